/** Member table of legacy completion requests: which members are read, ignored or refused (docs/clients.md). */
import { RESPONSE_FORMAT, STREAM_OPTIONS, STRUCTURED_OUTPUTS } from '../chat-completions/members.js';
import { BOOKKEEPING, ENGINE_HINTS, tokenLimitAlias, UNSUPPORTED_ENGINE_PARAMETERS } from '../members/common-members.js';
import { memberTable } from '../members/member-table.js';
import { PROVIDER_PREFERENCES } from '../routing.js';
import { CompletionRequestSchema } from './schema.js';

const USE_CHAT = { advice: 'Use /v1/chat/completions.' };

export const COMPLETION_MEMBERS = memberTable({
  schema: CompletionRequestSchema,
  refusesUnknown: true,
  ignored: `${BOOKKEEPING} ${ENGINE_HINTS} store service_tier`,
  refused: {
    ...UNSUPPORTED_ENGINE_PARAMETERS,
    max_completion_tokens: tokenLimitAlias('max_tokens'),
    max_output_tokens: tokenLimitAlias('max_tokens'),
    top_logprobs: { allowedValues: [0], advice: 'Use logprobs.' },
    messages: USE_CHAT,
    tools: USE_CHAT,
    tool_choice: { allowedValues: ['auto', 'none'], ...USE_CHAT },
    functions: USE_CHAT,
    prompt_embeds: {},
    input_extra: {},
    raw: { allowedValues: [true] },
  },
  within: {
    provider: PROVIDER_PREFERENCES,
    stream_options: STREAM_OPTIONS,
    response_format: RESPONSE_FORMAT,
    structured_outputs: STRUCTURED_OUTPUTS,
  },
});
