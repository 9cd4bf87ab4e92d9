/**
 * Member tables of chat completion requests: which members are read, ignored or refused (docs/clients.md).
 *
 * `refused: {name: {}}` means that the member is refused unless it is null, false or empty.
 */
import Type from 'typebox';
import { StructuredOutputsSchema } from '../constraints.js';
import { BOOKKEEPING, ENGINE_HINTS, tokenLimitAlias, UNSUPPORTED_ENGINE_PARAMETERS } from '../members/common-members.js';
import { memberTable } from '../members/member-table.js';
import { PROVIDER_PREFERENCES } from '../routing.js';
import {
  ChatCompletionRequestSchema,
  FunctionSchema,
  JsonSchemaFormatSchema,
  MessageSchema,
  PartSchema,
  ReasoningSchema,
  ResponseFormatSchema,
  StreamOptionsSchema,
  TemplateArgumentsSchema,
  ThinkingSchema,
  ToolSchema,
} from './schema.js';

const FUNCTION = memberTable({ schema: FunctionSchema, ignored: 'cache_control defer_loading input_examples returns response' });

export const STRUCTURED_OUTPUTS = memberTable({
  schema: StructuredOutputsSchema,
  ignored: 'disable_fallback disable_any_whitespace backend',
  refused: { grammar: {}, structural_tag: {}, whitespace_pattern: {}, disable_additional_properties: {} },
  refusesUnknown: true,
});

export const STREAM_OPTIONS = memberTable({
  schema: StreamOptionsSchema,
  ignored: 'include_obfuscation continuous_usage_stats',
  refusesUnknown: true,
});

export const RESPONSE_FORMAT = memberTable({
  schema: ResponseFormatSchema,
  refused: { grammar: {}, structures: {}, triggers: {} },
  within: { json_schema: memberTable({ schema: JsonSchemaFormatSchema, ignored: 'description', refusesUnknown: true }) },
  refusesUnknown: true,
});

export const CHAT_MEMBERS = memberTable({
  schema: ChatCompletionRequestSchema,
  refusesUnknown: true,
  ignored: `${BOOKKEEPING} ${ENGINE_HINTS} store verbosity prediction intent snippy copilot_thread_id
    thinking_budget thinking_token_budget thinking_config tool_stream vl_high_resolution_images cache_control context_management`,
  refused: {
    ...UNSUPPORTED_ENGINE_PARAMETERS,
    best_of: { allowedValues: [1] },
    echo: {},
    suffix: {},
    max_output_tokens: tokenLimitAlias('max_completion_tokens'),
    input: { advice: 'Use messages, or POST /v1/responses.' },
    prompt: { advice: 'Use messages, or POST /v1/completions.' },
    system: { advice: 'Send it as a message of the role "system".' },
    instructions: { advice: 'Send them as a message of the role "system".' },
    documents: { advice: 'Send their text in a message.' },
    chat_template: { advice: "The model's own template is used." },
    add_generation_prompt: { allowedValues: [true] },
    continue_final_message: {},
    mcp_servers: {},
    plugins: {},
    enable_search: {},
    search_parameters: {},
    web_search: {},
    previous_response_id: { advice: 'Send the whole conversation as messages.' },
    conversation: { advice: 'Send the whole conversation as messages.' },
    background: {},
    deferred: {},
    safe_prompt: {},
    output_config: { advice: 'Use response_format.' },
    text: { advice: 'Use response_format.' },
  },
  within: {
    provider: PROVIDER_PREFERENCES,
    reasoning: memberTable({ schema: ReasoningSchema, ignored: 'max_tokens exclude summary' }),
    chat_template_kwargs: memberTable({ schema: TemplateArgumentsSchema }),
    thinking: memberTable({ schema: ThinkingSchema, ignored: 'budget_tokens clear_thinking' }),
    stream_options: STREAM_OPTIONS,
    response_format: RESPONSE_FORMAT,
    structured_outputs: STRUCTURED_OUTPUTS,
    tools: memberTable({ schema: ToolSchema, ignored: 'cache_control custom', within: { function: FUNCTION } }),
    functions: FUNCTION,
    messages: memberTable({
      schema: MessageSchema,
      ignored: `cache_control reasoning reasoning_details reasoning_text reasoning_opaque thinking thinking_blocks provider_specific_fields
        prefix partial tool_name metadata extra_content annotations id index`,
      within: { content: memberTable({ schema: PartSchema, ignored: 'cache_control prompt_cache_breakpoint' }) },
    }),
    tool_choice: memberTable({ schema: Type.Object({}), alsoRead: 'type function allowed_tools' }),
  },
});
