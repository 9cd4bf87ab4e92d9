/** Members of an image request without effect or refused (docs/clients.md). */
import { BOOKKEEPING, ROUTING } from '../members/common-members.js';
import { memberTable } from '../members/member-table.js';
import { ImagesRequestSchema } from './schema.js';

export const IMAGES_MEMBERS = memberTable({
  schema: ImagesRequestSchema,
  refusesUnknown: true,
  ignored: `${BOOKKEEPING} ${ROUTING} style complexity`,
  refused: {
    background: { allowedValues: ['auto', 'opaque'] },
    partial_images: { allowedValues: [0] },
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
});
