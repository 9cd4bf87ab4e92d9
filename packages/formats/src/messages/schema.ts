/** Schema of the members of a Messages request that are read. `members.ts` handles all other members. */
import Type, { type Static } from 'typebox';
import {
  flag,
  JSON_SCHEMA,
  list,
  model,
  newToolName,
  nullable,
  object,
  provider_serial,
  STOP_SEQUENCE,
  TOKENS,
  TOOL_NAME,
  text,
} from '../fields.js';
import { ROUTING_FIELDS } from '../routing.js';
import { temperature_to_1, top_k, top_p } from '../sampling.js';

const STRING = Type.String({ description: 'a string' });

/** A custom tool if the type is absent or `custom`; otherwise a predefined tool (`client-tools.ts`). */
export const ToolSchema = Type.Object(
  {
    type: text,
    name: Type.Optional(Type.String(newToolName(128))),
    description: text,
    input_schema: Type.Optional(JSON_SCHEMA),
    strict: flag,
    /** Only for text editor tools: maximum characters that `view` returns. */
    max_characters: nullable(Type.Integer({ minimum: 1 }), 'an integer of at least 1'),
  },
  { description: 'an object with name and input_schema' },
);
export type MessagesTool = Static<typeof ToolSchema>;

/** Tool in a `tool_addition` or `tool_removal` block: a definition, or the name of a tool defined earlier. */
const ChangedToolSchema = Type.Object(
  { type: STRING, name: Type.Optional(STRING), definition: Type.Optional(ToolSchema) },
  { description: 'an object with a type' },
);

/** Accepts any `type`, so that the parser can refuse unsupported blocks with their path. */
const BlockSchema = Type.Object(
  {
    type: STRING,
    text: Type.Optional(STRING),
    thinking: Type.Optional(STRING),
    id: Type.Optional(STRING),
    name: Type.Optional(STRING),
    input: Type.Optional(Type.Unknown()),
    tool_use_id: Type.Optional(STRING),
    tool_name: Type.Optional(STRING),
    is_error: flag,
    content: Type.Optional(Type.Unknown()),
    title: text,
    context: text,
    source: Type.Optional(
      Type.Unknown({ description: 'an object such as {"type": "base64", "media_type": "image/png", "data": "…"} in an image block' }),
    ),
    tool: Type.Optional(ChangedToolSchema),
  },
  { description: 'an object with a type' },
);
export type Block = Static<typeof BlockSchema>;

const ContentSchema = Type.Union([Type.String(), Type.Array(BlockSchema)], { description: 'a string or an array of content blocks' });

export const MessageSchema = Type.Object(
  {
    role: Type.Enum(['user', 'assistant', 'system'], { description: 'one of user, assistant, system' }),
    /** Required except in system messages. */
    content: Type.Optional(ContentSchema),
    /** Only for system messages. `next_user_message`: the message is dropped if a user message follows. */
    clear_at: text,
  },
  { description: 'an object with role and content' },
);
export type Message = Static<typeof MessageSchema>;

export const ToolChoiceSchema = Type.Object(
  {
    type: Type.Enum(['auto', 'any', 'tool', 'none'], { description: 'one of auto, any, tool, none' }),
    name: Type.Optional(TOOL_NAME),
    disable_parallel_tool_use: flag,
  },
  { description: 'an object with a type' },
);

export const ThinkingSchema = Type.Object(
  {
    /** All types except `disabled` mean the model's default. */
    type: Type.Enum(['enabled', 'adaptive', 'between_tools', 'disabled'], {
      description: 'one of enabled, adaptive, between_tools, disabled',
    }),
    display: text,
    /** Has no effect, but has the minimum of Anthropic's API. With interleaved thinking, the budget may exceed `max_tokens`. */
    budget_tokens: nullable(Type.Integer({ minimum: 1024 }), 'an integer of at least 1024'),
  },
  { description: 'an object with a type' },
);

const OutputFormatSchema = Type.Object(
  { type: Type.String({ description: 'a string' }), schema: Type.Optional(JSON_SCHEMA) },
  { description: 'an object with type and schema' },
);
const OUTPUT_FORMAT = nullable(OutputFormatSchema, 'an object with type and schema');

export const OutputConfigSchema = Type.Object({ format: OUTPUT_FORMAT });

const PROMPT_FIELDS = {
  model,
  messages: Type.Array(MessageSchema, { minItems: 1, description: 'a non-empty array of messages' }),
  system: nullable(ContentSchema, 'a string or an array of text blocks'),
  tools: nullable(Type.Array(ToolSchema, { maxItems: 1024 }), 'an array of up to 1024 tools'),
  tool_choice: nullable(ToolChoiceSchema, 'an object with a type'),
  thinking: nullable(ThinkingSchema, 'an object with a type'),
  output_config: nullable(OutputConfigSchema, 'an object'),
  output_format: OUTPUT_FORMAT,
  provider_serial,
  ...ROUTING_FIELDS,

  // Unsupported features, which the parser refuses by name.
  mcp_servers: list,
  container: nullable(Type.Union([Type.String(), Type.Object({})]), 'a string or an object'),
  thread: object,
};

export const MessagesRequestSchema = Type.Object(
  {
    ...PROMPT_FIELDS,
    max_tokens: Type.Integer({ ...TOKENS, description: 'an integer from 1 to 2147483647' }),
    stream: flag,
    temperature: temperature_to_1,
    top_p,
    top_k,
    stop_sequences: nullable(Type.Array(STOP_SEQUENCE, { maxItems: 16 }), 'an array of up to 16 strings'),
    metadata: object,
    /** Has no effect, but is validated as in Anthropic's API. */
    service_tier: nullable(Type.Enum(['auto', 'standard_only']), 'auto or standard_only'),

    // Refused by the parser. Token counting accepts the member (COUNT_TOKENS_MEMBERS).
    compaction: object,
  },
  { description: 'a JSON object' },
);
export type MessagesRequest = Static<typeof MessagesRequestSchema>;

export const CountTokensRequestSchema = Type.Object(PROMPT_FIELDS, { description: 'a JSON object' });
export type CountTokensRequest = Static<typeof CountTokensRequestSchema>;
