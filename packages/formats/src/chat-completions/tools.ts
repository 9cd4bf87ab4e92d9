/** Converts tools, tool choice and response format of a chat completion request to the internal form. */
import { schemaForm } from '../constraints.js';
import { isFilled, isPresent, rejectInvalid, rejectUnsupported } from '../errors/reject.js';
import type { ResponseFormat, Tool, ToolChoice } from '../request.js';
import { choiceAmong, NO_PARAMETERS, refuseToolType, requireDistinctNames, toolsNamed } from '../tools.js';
import type { ChatCompletionRequest, ChatFunction, ChatResponseFormat, ChatTool, ChatToolChoice } from './schema.js';

/** Tools that the model may call, and the tool choice. Throws RequestError on contradictory members and impossible choices. */
export function toolsOf(body: ChatCompletionRequest): { readonly tools: readonly Tool[]; readonly toolChoice: ToolChoice } {
  if (isFilled(body.functions)) return legacyToolsOf(body);
  if (isPresent(body.function_call) && typeof body.function_call !== 'string') {
    rejectInvalid('function_call', 'function_call is only allowed when functions are given.');
  }
  if (isFilled(body.tools) && body.function_call === 'none') {
    rejectInvalid('function_call', 'function_call is only allowed when functions are given. Use tool_choice.');
  }
  const tools = (body.tools ?? []).map(functionTool);
  requireDistinctNames(tools);
  const choice = body.tool_choice ?? 'auto';
  if (typeof choice !== 'string' && choice.type === 'allowed_tools') {
    const { mode, names } = allowedTools(choice);
    const allowed = toolsNamed(tools, names);
    return { tools: allowed, toolChoice: choiceAmong(allowed, { type: mode }) };
  }
  return { tools, toolChoice: choiceAmong(tools, choiceOf(choice)) };
}

/** Tools from the legacy members `functions` and `function_call`. */
function legacyToolsOf(body: ChatCompletionRequest): { readonly tools: readonly Tool[]; readonly toolChoice: ToolChoice } {
  if (isFilled(body.tools)) rejectInvalid('functions', 'functions and tools are not allowed together. Use tools.');
  if (isPresent(body.tool_choice) && body.tool_choice !== 'auto')
    rejectInvalid('tool_choice', 'tool_choice is only allowed when tools are given. Use function_call.');
  const tools = (body.functions ?? []).map(toolOf);
  requireDistinctNames(tools, 'functions');
  const call = body.function_call ?? 'auto';
  if (typeof call === 'string') return { tools, toolChoice: { type: call } };
  if (!tools.some(({ name }) => name === call.name))
    rejectInvalid('function_call', 'function_call names a function that functions does not have.');
  return { tools, toolChoice: { type: 'named', name: call.name } };
}

function functionTool(tool: ChatTool, index: number): Tool {
  if (tool.type !== 'function') return refuseToolType(tool.type, `tools[${index}]`);
  return toolOf(tool.function ?? rejectInvalid(`tools[${index}].function`, `tools[${index}].function is required.`));
}

function toolOf({ name, description, parameters, strict }: ChatFunction): Tool {
  return { name, description: description ?? null, parameters: parameters ?? NO_PARAMETERS, strict: strict ?? false };
}

function choiceOf(choice: ChatToolChoice): ToolChoice {
  if (typeof choice === 'string') return { type: choice };
  if (choice.type !== 'function') return rejectUnsupported('tool_choice', 'tool_choice must name a tool of type "function".');
  if (!isPresent(choice.function)) return rejectInvalid('tool_choice.function', 'tool_choice.function is required.');
  return { type: 'named', name: choice.function.name };
}

function allowedTools(choice: Exclude<ChatToolChoice, string>) {
  const allowed = choice.allowed_tools ?? rejectInvalid('tool_choice.allowed_tools', 'tool_choice.allowed_tools is required.');
  return { mode: allowed.mode, names: allowed.tools.flatMap((tool) => (tool.function === undefined ? [] : [tool.function.name])) };
}

/** For each constraint member of `response_format`, the values of `type` that use the member. */
const TYPES_OF_MEMBER = {
  json_schema: ['json_schema'],
  schema: ['json_schema', 'json_object', 'json'],
  value: ['json_object', 'json', 'regex'],
  pattern: ['regex'],
} as const satisfies Partial<Record<keyof ChatResponseFormat, readonly string[]>>;

/** Throws RequestError on a constraint that the format's type does not use, and on two different constraints. */
function checkConstraints(format: ChatResponseFormat): void {
  let firstText: string | null = null;
  for (const [member, types] of Object.entries(TYPES_OF_MEMBER)) {
    const value = format[member as keyof typeof TYPES_OF_MEMBER];
    if (!isPresent(value) || value === '') continue;
    const field = `response_format.${member}`;
    if (!types.some((type) => type === format.type)) {
      rejectUnsupported(
        field,
        `${field} belongs to the type ${types.map((type) => `"${type}"`).join(' or ')} and is not supported with another.`,
      );
    }
    const text = JSON.stringify(typeof value === 'object' && 'name' in value && member === 'json_schema' ? value.schema : value);
    if (firstText !== null && firstText !== text)
      rejectInvalid(field, 'response_format holds more than one form of the answer. Give only one.');
    firstText = text;
  }
}

/** Converts `response_format`; absent means plain text. Throws RequestError. */
export function responseFormatOf(format: ChatResponseFormat | null | undefined): ResponseFormat {
  if (isPresent(format)) checkConstraints(format);
  switch (format?.type) {
    case undefined:
    case 'text':
      return { type: 'text' };
    case 'json':
    case 'json_object':
      return (
        schemaForm(format?.schema, 'response_format.schema') ??
        schemaForm(format?.value, 'response_format.value') ?? { type: 'json_object' }
      );
    case 'regex': {
      const [pattern, field] = isPresent(format?.pattern)
        ? [format.pattern, 'response_format.pattern']
        : [format?.value, 'response_format.value'];
      return typeof pattern === 'string' && pattern !== ''
        ? { type: 'regex', pattern, field }
        : rejectInvalid(field, `${field} must be a regular expression.`);
    }
    case 'json_schema': {
      if (!isPresent(format?.json_schema) && isPresent(format?.schema)) {
        return { type: 'json_schema', name: 'output', schema: format.schema, strict: true, field: 'response_format.schema' };
      }
      const jsonSchema = format?.json_schema ?? rejectInvalid('response_format.json_schema', 'response_format.json_schema is required.');
      return { type: 'json_schema', name: jsonSchema.name, schema: jsonSchema.schema ?? {}, strict: jsonSchema.strict ?? false };
    }
    default:
      return rejectUnsupported('response_format', 'response_format must be of type "text", "json_object", "json_schema" or "regex".');
  }
}
