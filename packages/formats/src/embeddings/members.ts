/** Member table of embeddings requests: which members are read, ignored or refused (docs/clients.md). */
import { BOOKKEEPING } from '../members/common-members.js';
import { memberTable } from '../members/member-table.js';
import { PROVIDER_PREFERENCES } from '../routing.js';
import { EmbeddingsRequestSchema } from './schema.js';

export const EMBEDDINGS_MEMBERS = memberTable({
  schema: EmbeddingsRequestSchema,
  refusesUnknown: true,
  ignored: `${BOOKKEEPING} input_type add_special_tokens`,
  refused: {
    truncate: { allowedValues: ['NONE', 'none'] },
    truncate_prompt_tokens: {},
    output_dtype: { allowedValues: ['float'], advice: 'Use encoding_format.' },
    task: {},
    late_chunking: {},
    normalize: { allowedValues: [true] },
  },
  within: { provider: PROVIDER_PREFERENCES },
});
