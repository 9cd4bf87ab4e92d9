/** Schema of the members of a Responses request that are read. `null` means absent. `members.ts` handles all other members. */
import Type, { type Static } from 'typebox';
import {
  anything,
  flag,
  JSON_SCHEMA,
  metadata,
  model,
  nullable,
  object,
  provider_serial,
  stop,
  TOOL_NAME,
  text,
  tokens,
  top_logprobs,
} from '../fields.js';
import { ROUTING_FIELDS } from '../routing.js';
import { OPEN_AI_SAMPLING } from '../sampling.js';

const STRING = Type.String({ description: 'a string' });

/** Accepts any `type`. The parser ignores items of unknown types. */
const ItemSchema = Type.Object(
  {
    type: text,
    role: nullable(Type.Enum(['user', 'assistant', 'system', 'developer']), 'one of user, assistant, system, developer'),
    content: anything,
    summary: anything,
    call_id: text,
    name: text,
    arguments: anything,
    output: anything,
  },
  { description: 'an object' },
);
export type Item = Static<typeof ItemSchema>;

export const ToolSchema = Type.Object(
  {
    type: STRING,
    name: nullable(TOOL_NAME, 'a string of 1 to 256 characters'),
    description: text,
    parameters: nullable(JSON_SCHEMA, 'a JSON Schema object'),
    strict: flag,
    /** For web search tools: whether pages may be fetched. Codex always sends this member. */
    external_web_access: flag,
    /** For custom tools: format or grammar of the input. */
    format: anything,
  },
  { description: 'an object with a type' },
);
export type ResponsesTool = Static<typeof ToolSchema>;

const ToolChoiceSchema = Type.Union([
  Type.Enum(['none', 'auto', 'required']),
  Type.Object({
    type: STRING,
    name: Type.Optional(TOOL_NAME),
    mode: Type.Optional(Type.Enum(['auto', 'required'], { description: 'auto or required' })),
    tools: Type.Optional(
      Type.Array(Type.Object({ type: STRING, name: Type.Optional(TOOL_NAME) }), { description: 'an array of objects with type and name' }),
    ),
  }),
]);
export type ResponsesToolChoice = Static<typeof ToolChoiceSchema>;

export const FormatSchema = Type.Object(
  {
    type: STRING,
    name: nullable(Type.String({ minLength: 1, maxLength: 256 }), 'a string of 1 to 256 characters'),
    description: text,
    schema: nullable(JSON_SCHEMA, 'a JSON Schema object'),
    strict: flag,
  },
  { description: 'an object with a type' },
);

export const TextSchema = Type.Object({ format: nullable(FormatSchema, 'an object with a type'), verbosity: text });
/** `enabled` comes from OpenRouter. */
export const ReasoningSchema = Type.Object({ effort: text, summary: text, enabled: flag });

export const ResponsesRequestSchema = Type.Object(
  {
    model,
    input: Type.Union([Type.String(), Type.Array(ItemSchema, { minItems: 1 })], { description: 'a string or a non-empty array of items' }),
    instructions: text,
    stream: flag,
    max_output_tokens: tokens,
    ...OPEN_AI_SAMPLING,
    stop,
    tools: nullable(Type.Array(ToolSchema, { maxItems: 1024 }), 'an array of up to 1024 tools'),
    tool_choice: nullable(ToolChoiceSchema, 'none, auto, required, or an object that names a function'),
    parallel_tool_calls: flag,
    text: nullable(TextSchema, 'an object'),
    reasoning: nullable(ReasoningSchema, 'an object'),
    include: nullable(Type.Array(Type.String()), 'an array of strings'),
    top_logprobs,
    max_tool_calls: nullable(Type.Integer(), 'an integer'),
    metadata,
    stream_options: object,
    truncation: nullable(Type.Enum(['auto', 'disabled']), 'auto or disabled'),
    store: flag,
    service_tier: nullable(Type.Enum(['auto', 'default', 'flex', 'scale', 'priority']), 'one of auto, default, flex, scale, priority'),
    user: text,
    safety_identifier: text,
    prompt_cache_key: text,
    provider_serial,
    ...ROUTING_FIELDS,

    // Unsupported features, which the parser refuses by name.
    previous_response_id: text,
    conversation: nullable(Type.Union([Type.String(), Type.Object({})]), 'a string or an object'),
    background: flag,
    prompt: object,
    n: nullable(Type.Integer(), 'an integer'),
    logit_bias: object,
  },
  { description: 'a JSON object' },
);
export type ResponsesRequest = Static<typeof ResponsesRequestSchema>;
