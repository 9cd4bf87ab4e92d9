/** Members of an embeddings request without effect or refused (docs/clients.md). */
import { BOOKKEEPING } from '../members/common-members.js';
import { memberTable } from '../members/member-table.js';
import { EmbeddingsRequestSchema } from './schema.js';

export const EMBEDDINGS_MEMBERS = memberTable({
  schema: EmbeddingsRequestSchema,
  isClosed: true,
  ignored: `${BOOKKEEPING} input_type add_special_tokens`,
  refused: {
    truncate: { neutral: ['NONE', 'none'] },
    truncate_prompt_tokens: {},
    output_dtype: { neutral: ['float'], advice: 'Use encoding_format.' },
    task: {},
    late_chunking: {},
    normalize: { neutral: [true] },
  },
});
