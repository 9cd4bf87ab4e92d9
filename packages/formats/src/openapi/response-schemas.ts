/** Schemas of response bodies for the OpenAPI document. Tests check the renderers against them. Responses may have more members. */
import Type from 'typebox';
import { MAX_CHOICES } from '../choices.js';
import { nullable } from '../console/schema-parts.js';
import { ERRORS } from '../errors/error-table.js';
import { ImagesAnswerSchema } from '../images/answer.js';

const tokens = Type.Integer({ minimum: 0 });
const codes = [...new Set(Object.values(ERRORS).map(({ code }) => code))];
const anthropicTypes = [...new Set(Object.values(ERRORS).map(({ anthropic }) => anthropic))];

const OpenAiUsage = Type.Object({
  prompt_tokens: tokens,
  completion_tokens: tokens,
  total_tokens: tokens,
  prompt_tokens_details: Type.Object({ cached_tokens: tokens }),
  completion_tokens_details: Type.Object({ reasoning_tokens: tokens }),
});

const logprob = { token: Type.String(), logprob: Type.Number(), bytes: nullable(Type.Array(Type.Integer())) };
const ChatLogprobs = Type.Object({
  content: Type.Array(Type.Object({ ...logprob, top_logprobs: Type.Array(Type.Object(logprob)) })),
  refusal: Type.Null(),
});

/** Call in a response to a request with the legacy member `functions`. */
const FunctionCall = Type.Object({ name: Type.String(), arguments: Type.String({ description: 'JSON text.' }) });

const ToolCall = Type.Object({
  id: Type.String(),
  type: Type.Literal('function'),
  function: Type.Object({ name: Type.String(), arguments: Type.String({ description: 'JSON text.' }) }),
});

const head = { id: Type.String(), created: Type.Integer({ description: 'Seconds since 1970.' }), model: Type.String() };

const engine = {
  system_fingerprint: Type.Optional(Type.String({ description: 'The same for the same weights on the same build of the engine.' })),
};
const tier = { service_tier: Type.Optional(Type.Literal('default')) };

/** Members of the signature event at the end of a stream of chunks. */
const signature = {
  se_signature: Type.Optional(
    Type.String({ description: 'Base64 of the DER signature by the enclave over the 64 digits of response_hash.' }),
  ),
  response_hash: Type.Optional(
    Type.String({ description: 'Hexadecimal SHA-256 of all bytes of the stream before this event, without comments.' }),
  ),
  receipt: Type.Optional(Type.String()),
  receipt_signature: Type.Optional(Type.String()),
};

const ChatCompletion = Type.Object({
  ...head,
  ...engine,
  ...tier,
  object: Type.Literal('chat.completion'),
  choices: Type.Array(
    Type.Object({
      index: Type.Integer(),
      message: Type.Object({
        role: Type.Literal('assistant'),
        content: nullable(Type.String()),
        refusal: Type.Null(),
        reasoning_content: Type.Optional(Type.String()),
        tool_calls: Type.Optional(Type.Array(ToolCall)),
        function_call: Type.Optional(FunctionCall),
      }),
      logprobs: nullable(ChatLogprobs),
      finish_reason: Type.Enum(['stop', 'length', 'tool_calls', 'function_call']),
    }),
    { minItems: 1, maxItems: MAX_CHOICES },
  ),
  usage: OpenAiUsage,
});

const ChatCompletionChunk = Type.Object({
  ...head,
  ...engine,
  ...tier,
  object: Type.Literal('chat.completion.chunk'),
  choices: Type.Array(
    Type.Object({
      index: Type.Integer(),
      delta: Type.Object({
        role: Type.Optional(Type.Literal('assistant')),
        content: Type.Optional(nullable(Type.String())),
        reasoning_content: Type.Optional(Type.String()),
        tool_calls: Type.Optional(Type.Array(Type.Object({ index: Type.Integer() }))),
        function_call: Type.Optional(Type.Object({ name: Type.Optional(Type.String()), arguments: Type.String() })),
      }),
      logprobs: nullable(ChatLogprobs),
      finish_reason: nullable(Type.Enum(['stop', 'length', 'tool_calls', 'function_call'])),
    }),
  ),
  usage: Type.Optional(nullable(OpenAiUsage)),
  ...signature,
});

const Completion = Type.Object({
  ...head,
  ...engine,
  object: Type.Literal('text_completion'),
  choices: Type.Array(
    Type.Object({
      text: Type.String(),
      index: Type.Integer(),
      delta: Type.Optional(Type.Object({ content: Type.Optional(Type.String()) }, { description: 'Only in streams: `text` again.' })),
      logprobs: nullable(Type.Object({ tokens: Type.Array(Type.String()), token_logprobs: Type.Array(Type.Number()) })),
      finish_reason: nullable(Type.Enum(['stop', 'length'])),
    }),
  ),
  usage: Type.Optional(nullable(OpenAiUsage)),
  ...signature,
});

const ResponseObject = Type.Object({
  id: Type.String(),
  object: Type.Literal('response'),
  created_at: Type.Integer({ description: 'Seconds since 1970.' }),
  completed_at: nullable(Type.Integer()),
  status: Type.Enum(['in_progress', 'completed', 'incomplete']),
  error: Type.Null(),
  incomplete_details: nullable(Type.Object({ reason: Type.Literal('max_output_tokens') })),
  model: Type.String(),
  output: Type.Array(Type.Object({ id: Type.String(), type: Type.Enum(['message', 'reasoning', 'function_call']), status: Type.String() })),
  usage: nullable(
    Type.Object({
      input_tokens: tokens,
      input_tokens_details: Type.Object({ cached_tokens: tokens, cache_write_tokens: tokens }),
      output_tokens: tokens,
      output_tokens_details: Type.Object({ reasoning_tokens: tokens }),
      total_tokens: tokens,
    }),
  ),
  tools: Type.Array(Type.Object({ type: Type.Literal('function'), name: Type.String() })),
  tool_choice: Type.Union([Type.String(), Type.Object({ type: Type.Literal('function'), name: Type.String() })]),
  parallel_tool_calls: Type.Boolean(),
  temperature: Type.Number(),
  top_p: Type.Number(),
  instructions: nullable(Type.String()),
  store: Type.Literal(false),
});

const ContentBlock = Type.Union([
  Type.Object({ type: Type.Literal('text'), text: Type.String() }),
  Type.Object({ type: Type.Literal('thinking'), thinking: Type.String(), signature: Type.String() }),
  Type.Object({ type: Type.Literal('tool_use'), id: Type.String(), name: Type.String(), input: Type.Object({}) }),
]);

const Message = Type.Object({
  id: Type.String(),
  type: Type.Literal('message'),
  role: Type.Literal('assistant'),
  model: Type.String(),
  content: Type.Array(ContentBlock, { minItems: 1 }),
  stop_reason: Type.Enum(['end_turn', 'max_tokens', 'stop_sequence', 'tool_use']),
  stop_sequence: nullable(Type.String()),
  usage: Type.Object({ input_tokens: tokens, cache_creation_input_tokens: tokens, cache_read_input_tokens: tokens, output_tokens: tokens }),
});

const TokenCount = Type.Object({ input_tokens: tokens });

const Embeddings = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('embedding'),
      index: Type.Integer({ minimum: 0 }),
      embedding: Type.Union([
        Type.Array(Type.Number()),
        Type.String({ description: 'Base64 of little-endian 32-bit floats, where encoding_format asked for it.' }),
      ]),
    }),
    { minItems: 1 },
  ),
  model: Type.String(),
  usage: Type.Object({ prompt_tokens: tokens, total_tokens: tokens }),
});

const OpenAiError = Type.Object({
  error: Type.Object({
    message: Type.String(),
    type: Type.String(),
    param: nullable(Type.String({ description: 'Request field at fault.' })),
    code: Type.Enum(codes),
  }),
});

const AnthropicError = Type.Object({
  type: Type.Literal('error'),
  error: Type.Object({ type: Type.Enum(anthropicTypes), message: Type.String() }),
  request_id: nullable(Type.String()),
});

export const RESPONSE_SCHEMAS = {
  ChatCompletion,
  ChatCompletionChunk,
  Completion,
  Response: ResponseObject,
  Message,
  TokenCount,
  Embeddings,
  Images: ImagesAnswerSchema,
  OpenAiError,
  AnthropicError,
};
