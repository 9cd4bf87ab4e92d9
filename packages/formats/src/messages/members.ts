/** Member tables of Messages and token counting requests: which members are read, ignored or refused (docs/clients.md). */
import { refuseConstraints } from '../constraints.js';
import { BOOKKEEPING, tokenLimitAlias, UNSUPPORTED_ENGINE_PARAMETERS } from '../members/common-members.js';
import { memberTable } from '../members/member-table.js';
import { PROVIDER_PREFERENCES } from '../routing.js';
import {
  CountTokensRequestSchema,
  MessageSchema,
  MessagesRequestSchema,
  OutputConfigSchema,
  ThinkingSchema,
  ToolChoiceSchema,
  ToolSchema,
} from './schema.js';

const LIMIT = tokenLimitAlias('max_tokens');
const STOP = { advice: 'Use stop_sequences.' };
const UNSUPPORTED = {};
const { stop_sequence: _stop, stop_sequences: _stops, ...ENGINE_PARAMETERS } = UNSUPPORTED_ENGINE_PARAMETERS;

const REFUSED = {
  ...ENGINE_PARAMETERS,
  ...refuseConstraints('Use output_config.format.'),
  n_predict: LIMIT,
  num_predict: LIMIT,
  max_length: LIMIT,
  max_new_tokens: LIMIT,
  stop_token_ids: STOP,
  max_completion_tokens: LIMIT,
  max_output_tokens: LIMIT,
  max_tokens_to_sample: LIMIT,
  stop: STOP,
  n: { allowedValues: [1] },
  seed: UNSUPPORTED,
  min_p: { allowedValues: [0] },
  logit_bias: UNSUPPORTED,
  logprobs: UNSUPPORTED,
  top_logprobs: { allowedValues: [0] },
  frequency_penalty: { allowedValues: [0] },
  presence_penalty: { allowedValues: [0] },
  repetition_penalty: { allowedValues: [1] },
  repeat_penalty: { allowedValues: [1] },
  functions: { advice: 'Use tools.' },
  function_call: { advice: 'Use tool_choice.' },
  prompt: { advice: 'Use messages.' },
  input: { advice: 'Use messages.' },
  instructions: { advice: 'Use system.' },
  reasoning_effort: { advice: 'Use thinking.' },
  inference_geo: { allowedValues: ['global'], advice: 'The location of the answering machine cannot be chosen.' },
  mcp_toolsets: {},
};

/** Accounting, beta features of Anthropic's API and engine hints. */
const IGNORED = `${BOOKKEEPING} cache_control context_management service_tier speed fallbacks fallback_credit_token billing_policy diagnostics
  user_profile_id workspace_id betas cache_prompt reasoning_format`;

const WITHIN = {
  provider: PROVIDER_PREFERENCES,
  output_config: memberTable({ schema: OutputConfigSchema, ignored: 'effort task_budget verbosity' }),
  thinking: memberTable({ schema: ThinkingSchema, ignored: 'budget_tokens block_binding' }),
  tool_choice: memberTable({ schema: ToolChoiceSchema }),
  tools: memberTable({
    schema: ToolSchema,
    alsoRead: 'cache_control eager_input_streaming defer_loading allowed_callers max_characters',
    ignored: 'input_examples',
  }),
  messages: memberTable({ schema: MessageSchema, ignored: 'output_config cache_control id' }),
};

export const MESSAGES_MEMBERS = memberTable({
  schema: MessagesRequestSchema,
  ignored: IGNORED,
  refused: REFUSED,
  within: WITHIN,
  refusesUnknown: true,
});

/** Also accepts members of a Messages request that do not affect the count, because clients send the complete request. */
export const COUNT_TOKENS_MEMBERS = memberTable({
  schema: CountTokensRequestSchema,
  alsoRead: 'max_tokens stream temperature top_p top_k stop_sequences compaction',
  ignored: IGNORED,
  refused: REFUSED,
  within: WITHIN,
  refusesUnknown: true,
});
