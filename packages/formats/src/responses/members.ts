/** Member table of Responses requests: which members are read, ignored or refused (docs/clients.md). */
import { refuseConstraints } from '../constraints.js';
import { BOOKKEEPING, ENGINE_HINTS, tokenLimitAlias, UNSUPPORTED_ENGINE_PARAMETERS } from '../members/common-members.js';
import { memberTable } from '../members/member-table.js';
import { PROVIDER_PREFERENCES } from '../routing.js';
import { FormatSchema, ReasoningSchema, ResponsesRequestSchema, TextSchema, ToolSchema } from './schema.js';

/** Members that the response repeats, so they are read instead of ignored. */
const ECHOED = /\b(?:metadata|user|safety_identifier|prompt_cache_key)\s/g;

const LIMIT = tokenLimitAlias('max_output_tokens');

export const RESPONSES_MEMBERS = memberTable({
  schema: ResponsesRequestSchema,
  refusesUnknown: true,
  ignored: `${BOOKKEEPING.replace(ECHOED, '')} ${ENGINE_HINTS} store context_management access_programs image`,
  refused: {
    ...UNSUPPORTED_ENGINE_PARAMETERS,
    ...refuseConstraints('Use text.format.'),
    n_predict: LIMIT,
    num_predict: LIMIT,
    max_length: LIMIT,
    max_new_tokens: LIMIT,
    max_tokens: LIMIT,
    max_completion_tokens: LIMIT,
    messages: { advice: 'Use input.' },
    functions: { advice: 'Use tools.' },
    function_call: { advice: 'Use tool_choice.' },
    reasoning_effort: { advice: 'Use reasoning.effort.' },
    system: { advice: 'Use instructions.' },
    verbosity: { advice: 'Use text.verbosity.' },
    logprobs: { advice: 'Use top_logprobs.' },
    best_of: { allowedValues: [1] },
  },
  within: {
    provider: PROVIDER_PREFERENCES,
    stream_options: memberTable({ schema: {}, ignored: 'include_obfuscation include_usage', refusesUnknown: true }),
    reasoning: memberTable({
      schema: ReasoningSchema,
      ignored: 'summary generate_summary context mode exclude max_tokens',
      refusesUnknown: true,
    }),
    text: memberTable({
      schema: TextSchema,
      ignored: 'verbosity',
      within: { format: memberTable({ schema: FormatSchema, refused: { syntax: {}, definition: {} } }) },
      refusesUnknown: true,
    }),
    tools: memberTable({ schema: ToolSchema, alsoRead: 'tools filters user_location search_context_size search_content_types' }),
  },
});
