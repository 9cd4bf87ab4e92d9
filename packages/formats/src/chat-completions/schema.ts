/**
 * The chat completion request as it may arrive. Fields that are not listed are tolerated, and `null` counts as absent.
 * Descriptions complete the sentence "<field> must be ..." of an error message.
 */
import Type, { type Static, type TSchema } from 'typebox';

const nullable = <Schema extends TSchema>(schema: Schema, description: string) =>
  Type.Optional(Type.Union([schema, Type.Null()], { description }));

/** Longest stop sequence, in UTF-16 units. */
export const MAX_STOP_LENGTH = 1024;
const TOKENS = Type.Integer({ minimum: 1, maximum: 2_147_483_647 });
const TOKENS_WORDS = 'an integer of at least 1';
const PENALTY = Type.Number({ minimum: -2, maximum: 2 });
const STOP_LENGTH = { minLength: 1, maxLength: MAX_STOP_LENGTH };
const STOP_WORDS = `a string of 1 to ${MAX_STOP_LENGTH} characters`;

/** Parts of any `type` pass here, so that the parser can say which of them are not served. */
const PartSchema = Type.Object(
  {
    type: Type.String({ description: 'a string' }),
    text: Type.Optional(Type.String({ description: 'a string' })),
  },
  { description: 'an object with a type' },
);
export type Part = Static<typeof PartSchema>;

const MessageSchema = Type.Object(
  {
    role: Type.Enum(['system', 'developer', 'user', 'assistant', 'tool'], {
      description: 'one of system, developer, user, assistant, tool',
    }),
    content: Type.Optional(
      Type.Union([Type.String(), Type.Array(PartSchema, { minItems: 1 }), Type.Null()], {
        description: 'a string or a non-empty array of text parts',
      }),
    ),
    tool_calls: nullable(Type.Array(Type.Unknown()), 'an array'),
    function_call: Type.Optional(Type.Unknown()),
    audio: Type.Optional(Type.Unknown()),
  },
  { description: 'an object with role and content' },
);
export type Message = Static<typeof MessageSchema>;

export const ChatCompletionRequestSchema = Type.Object(
  {
    model: Type.String({ minLength: 1, maxLength: 256, description: 'a string of 1 to 256 characters' }),
    messages: Type.Array(MessageSchema, { minItems: 1, description: 'a non-empty array of messages' }),
    stream: nullable(Type.Boolean(), 'a boolean'),
    stream_options: nullable(
      Type.Object({ include_usage: nullable(Type.Boolean(), 'a boolean') }),
      'an object such as {"include_usage": true}',
    ),
    max_tokens: nullable(TOKENS, TOKENS_WORDS),
    max_completion_tokens: nullable(TOKENS, TOKENS_WORDS),
    temperature: nullable(Type.Number({ minimum: 0, maximum: 2 }), 'a number from 0 to 2'),
    top_p: nullable(Type.Number({ minimum: 0, maximum: 1 }), 'a number from 0 to 1'),
    seed: nullable(Type.Integer({ minimum: -(2 ** 63), maximum: 2 ** 63 }), 'an integer from -2^63 to 2^63'),
    frequency_penalty: nullable(PENALTY, 'a number from -2 to 2'),
    presence_penalty: nullable(PENALTY, 'a number from -2 to 2'),
    stop: nullable(
      Type.Union([Type.String(STOP_LENGTH), Type.Array(Type.String({ ...STOP_LENGTH, description: STOP_WORDS }), { maxItems: 4 })]),
      `${STOP_WORDS}, or an array of up to 4 of them`,
    ),
    provider_serial: nullable(Type.String({ minLength: 1, maxLength: 128 }), 'a string of 1 to 128 characters'),

    // Known features that are not served: read only to be refused (see refusals.ts).
    n: nullable(Type.Integer(), 'an integer'),
    tools: nullable(Type.Array(Type.Unknown()), 'an array'),
    tool_choice: Type.Optional(Type.Unknown()),
    functions: nullable(Type.Array(Type.Unknown()), 'an array'),
    function_call: Type.Optional(Type.Unknown()),
    response_format: nullable(Type.Object({ type: Type.String({ description: 'a string' }) }), 'an object with a type'),
    logprobs: nullable(Type.Boolean(), 'a boolean'),
    top_logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 }), 'an integer from 0 to 20'),
    logit_bias: nullable(Type.Object({}), 'an object'),
    modalities: nullable(Type.Array(Type.String()), 'an array of strings'),
    audio: Type.Optional(Type.Unknown()),
    web_search_options: Type.Optional(Type.Unknown()),
  },
  { description: 'a JSON object' },
);
export type ChatCompletionRequest = Static<typeof ChatCompletionRequestSchema>;
