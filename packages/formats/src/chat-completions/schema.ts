/** Schema of the members of a chat completion request that are read. `null` means absent. `members.ts` handles all other members. */
import Type, { type Static } from 'typebox';
import { choices } from '../choices.js';
import { CONSTRAINTS } from '../constraints.js';
import {
  anything,
  flag,
  JSON_SCHEMA,
  metadata,
  model,
  newToolName,
  nullable,
  provider_serial,
  stop,
  TOOL_NAME,
  text,
  tokens,
  top_logprobs,
} from '../fields.js';
import { ROUTING_FIELDS } from '../routing.js';
import { COMPLETION_SAMPLING } from '../sampling.js';

/** Accepts any `type`, so that the parser can name an unsupported type in the error. */
export const PartSchema = Type.Object(
  {
    type: Type.String({ description: 'a string' }),
    text: Type.Optional(Type.String({ description: 'a string' })),
    refusal: text,
    image_url: Type.Optional(
      Type.Unknown({ description: 'an object with a url, such as data:image/png;base64,…, and a detail of auto, low, high or original' }),
    ),
    file: Type.Optional(Type.Unknown({ description: 'an object with an image as file_data, in base64 or as a data URI' })),
  },
  { description: 'an object with a type' },
);
export type Part = Static<typeof PartSchema>;

const ToolCallSchema = Type.Object(
  {
    id: Type.String({ minLength: 1, description: 'a non-empty string' }),
    type: Type.Optional(Type.String({ description: 'a string' })),
    function: Type.Optional(
      Type.Object(
        { name: TOOL_NAME, arguments: Type.String({ description: 'a string' }) },
        { description: 'an object with name and arguments' },
      ),
    ),
  },
  { description: 'an object with id, type and function' },
);

const FunctionCallSchema = Type.Object(
  { name: TOOL_NAME, arguments: Type.String({ description: 'a string' }) },
  { description: 'an object with name and arguments' },
);

export const MessageSchema = Type.Object(
  {
    role: Type.Enum(['system', 'developer', 'user', 'assistant', 'tool', 'function'], {
      description: 'one of system, developer, user, assistant, tool, function',
    }),
    /** Name of the called function in a `function` message. No effect in other messages. */
    name: text,
    content: Type.Optional(
      Type.Union([Type.String(), Type.Array(PartSchema, { minItems: 1 }), Type.Null()], {
        description: 'a string or a non-empty array of parts',
      }),
    ),
    tool_calls: nullable(Type.Array(ToolCallSchema), 'an array of tool calls'),
    tool_call_id: text,
    reasoning_content: text,
    refusal: text,
    /** Legacy form of `tool_calls`. */
    function_call: nullable(FunctionCallSchema, 'an object with name and arguments'),
    audio: anything,
  },
  { description: 'an object with role and content' },
);
export type Message = Static<typeof MessageSchema>;

export const FunctionSchema = Type.Object(
  { name: Type.String(newToolName(64)), description: text, parameters: nullable(JSON_SCHEMA, 'a JSON Schema object'), strict: flag },
  { description: 'an object with a name' },
);
export type ChatFunction = Static<typeof FunctionSchema>;

/** Accepts any `type`, so that the parser can name an unsupported type in the error. */
export const ToolSchema = Type.Object(
  { type: Type.String({ description: 'a string' }), function: Type.Optional(FunctionSchema) },
  { description: 'an object with type and function' },
);
export type ChatTool = Static<typeof ToolSchema>;

const NamedFunction = Type.Object({ name: TOOL_NAME }, { description: 'an object with a name' });
const ToolChoiceSchema = Type.Union(
  [
    Type.Enum(['none', 'auto', 'required']),
    Type.Object({
      type: Type.String({ description: 'a string' }),
      function: nullable(NamedFunction, 'an object with a name'),
      allowed_tools: nullable(
        Type.Object(
          {
            mode: Type.Enum(['auto', 'required'], { description: 'auto or required' }),
            tools: Type.Array(Type.Object({ type: Type.String(), function: Type.Optional(NamedFunction) }), {
              description: 'an array of objects with type and function',
            }),
          },
          { description: 'an object with mode and tools' },
        ),
        'an object with mode and tools',
      ),
    }),
  ],
  { description: 'none, auto, required, or an object that names a function' },
);
export type ChatToolChoice = Static<typeof ToolChoiceSchema>;

export const JsonSchemaFormatSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 256, description: 'a string of 1 to 256 characters' }),
    schema: nullable(JSON_SCHEMA, 'a JSON Schema object'),
    strict: flag,
  },
  { description: 'an object with name and schema' },
);

export const ResponseFormatSchema = Type.Object(
  {
    type: Type.String({ description: 'a string' }),
    json_schema: nullable(JsonSchemaFormatSchema, 'an object with name and schema'),
    /** Schema in the format of llama.cpp, Together and Fireworks. Also allowed with type `json_object`. */
    schema: nullable(JSON_SCHEMA, 'a JSON Schema object'),
    /** Schema or regular expression in the format of TGI. */
    value: nullable(Type.Union([JSON_SCHEMA, Type.String()]), 'a JSON Schema object or a regular expression'),
    /** Regular expression in the format of Fireworks and xgrammar. */
    pattern: text,
  },
  { description: 'an object with a type' },
);

export const StreamOptionsSchema = Type.Object({ include_usage: flag });

/** Parameters with which clients of other servers turn thinking on or off. */
export const ReasoningSchema = Type.Object({ effort: text, enabled: flag });
export const TemplateArgumentsSchema = Type.Object({ enable_thinking: flag });
export const ThinkingSchema = Type.Object({ type: text });
export type ChatResponseFormat = Static<typeof ResponseFormatSchema>;

export const ChatCompletionRequestSchema = Type.Object(
  {
    model,
    messages: Type.Array(MessageSchema, { minItems: 1, description: 'a non-empty array of messages' }),
    stream: flag,
    stream_options: nullable(StreamOptionsSchema, 'an object such as {"include_usage": true}'),
    max_tokens: tokens,
    max_completion_tokens: tokens,
    ...COMPLETION_SAMPLING,
    stop,
    tools: nullable(Type.Array(ToolSchema, { maxItems: 1024 }), 'an array of up to 1024 tools'),
    tool_choice: nullable(ToolChoiceSchema, 'none, auto, required, or an object that names a function'),
    parallel_tool_calls: flag,
    /** Legacy forms of `tools` and `tool_choice`. */
    functions: nullable(Type.Array(FunctionSchema, { maxItems: 1024 }), 'an array of up to 1024 functions'),
    function_call: nullable(
      Type.Union([Type.Enum(['none', 'auto']), Type.Object({ name: TOOL_NAME })]),
      'none, auto, or an object with the name of a function',
    ),
    response_format: nullable(ResponseFormatSchema, 'an object with a type'),
    ...CONSTRAINTS,
    logprobs: flag,
    top_logprobs,
    reasoning_effort: text,
    reasoning: nullable(ReasoningSchema, 'an object such as {"effort": "none"}'),
    enable_thinking: flag,
    chat_template_kwargs: nullable(TemplateArgumentsSchema, 'an object such as {"enable_thinking": false}'),
    thinking: nullable(ThinkingSchema, 'an object with a type'),
    /** These members have no effect, but are validated as in OpenAI's API. */
    metadata,
    store: flag,
    service_tier: nullable(Type.Enum(['auto', 'default', 'flex', 'scale', 'priority']), 'one of auto, default, flex, scale, priority'),
    /** Extension of OpenAI's API: renders think segments as `reasoning_content`. */
    include_reasoning: flag,
    provider_serial,
    ...ROUTING_FIELDS,
    n: choices,

    // Unsupported features, which the parser refuses by name.
    modalities: nullable(Type.Array(Type.String()), 'an array of strings'),
    audio: anything,
    web_search_options: anything,
  },
  { description: 'a JSON object' },
);
export type ChatCompletionRequest = Static<typeof ChatCompletionRequestSchema>;
