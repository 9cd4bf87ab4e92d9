/** Members of a legacy completion request without effect or refused (docs/clients.md). */
import { RESPONSE_FORMAT, STREAM_OPTIONS, STRUCTURED_OUTPUTS } from '../chat-completions/members.js';
import { BOOKKEEPING, ENGINE_HINTS, FOREIGN_CONSTRAINTS, otherLimit } from '../members/common-members.js';
import { memberTable } from '../members/member-table.js';
import { CompletionRequestSchema } from './schema.js';

const ONLY_TEXT = { advice: 'Use /v1/chat/completions.' };

export const COMPLETION_MEMBERS = memberTable({
  schema: CompletionRequestSchema,
  isClosed: true,
  ignored: `${BOOKKEEPING} ${ENGINE_HINTS} store service_tier`,
  refused: {
    ...FOREIGN_CONSTRAINTS,
    max_completion_tokens: otherLimit('max_tokens'),
    max_output_tokens: otherLimit('max_tokens'),
    top_logprobs: { neutral: [0], advice: 'Use logprobs.' },
    messages: ONLY_TEXT,
    tools: ONLY_TEXT,
    tool_choice: { neutral: ['auto', 'none'], ...ONLY_TEXT },
    functions: ONLY_TEXT,
    prompt_embeds: {},
    input_extra: {},
    raw: { neutral: [true] },
  },
  within: { stream_options: STREAM_OPTIONS, response_format: RESPONSE_FORMAT, structured_outputs: STRUCTURED_OUTPUTS },
});
