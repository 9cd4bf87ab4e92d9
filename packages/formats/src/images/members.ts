/** Member table of image requests: which members are read, ignored or refused (docs/clients.md). */
import { BOOKKEEPING } from '../members/common-members.js';
import { memberTable } from '../members/member-table.js';
import { PROVIDER_PREFERENCES } from '../routing.js';
import { ImagesRequestSchema } from './schema.js';

export const IMAGES_MEMBERS = memberTable({
  schema: ImagesRequestSchema,
  refusesUnknown: true,
  ignored: `${BOOKKEEPING} style complexity`,
  refused: {
    background: { allowedValues: ['auto', 'opaque'] },
    partial_images: { allowedValues: [0] },
    models: { advice: 'Images have no fallback models. Use model.' },
    image: {},
    mask: {},
    negative_prompt: {},
    frame_count: {},
    frame_duration_ms: {},
    svg: {},
    steps: { advice: 'Use quality.' },
    num_inference_steps: { advice: 'Use quality.' },
    guidance_scale: {},
    cfg_scale: {},
    aspect_ratio: { advice: 'Use size.' },
    width: { advice: 'Use size.' },
    height: { advice: 'Use size.' },
  },
  within: { provider: PROVIDER_PREFERENCES },
});
