/** Tools, tool choice and response format as chat completions spell them. */
import { schemaForm } from '../constraints.js';
import { isFilled, isGiven, refuse, reject } from '../refusal.js';
import type { ResponseFormat, Tool, ToolChoice } from '../request.js';
import { choiceAmong, NO_PARAMETERS, refuseToolType, requireDistinctNames, toolsNamed } from '../tools.js';
import type { ChatCompletionRequest, ChatFunction, ChatResponseFormat, ChatTool, ChatToolChoice } from './schema.js';

/** Throws RequestError where a call is demanded that cannot be made. */
export function toolsOf(body: ChatCompletionRequest): { readonly tools: readonly Tool[]; readonly toolChoice: ToolChoice } {
  if (isFilled(body.functions)) return functionsOf(body);
  if (isGiven(body.function_call) && typeof body.function_call !== 'string') {
    reject('function_call', 'function_call is only allowed when functions are given.');
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

/** `functions` and `function_call`, the predecessors of tools. */
function functionsOf(body: ChatCompletionRequest): { readonly tools: readonly Tool[]; readonly toolChoice: ToolChoice } {
  if (isFilled(body.tools)) reject('functions', 'functions and tools are not allowed together. Use tools.');
  const tools = (body.functions ?? []).map(toolOf);
  requireDistinctNames(tools, 'functions');
  const call = body.function_call ?? 'auto';
  if (typeof call === 'string') return { tools, toolChoice: { type: call } };
  if (!tools.some(({ name }) => name === call.name))
    reject('function_call', 'function_call names a function that functions does not have.');
  return { tools, toolChoice: { type: 'named', name: call.name } };
}

function functionTool(tool: ChatTool, index: number): Tool {
  if (tool.type !== 'function') return refuseToolType(tool.type, `tools[${index}]`);
  return toolOf(tool.function ?? reject(`tools[${index}].function`, `tools[${index}].function is required.`));
}

function toolOf({ name, description, parameters, strict }: ChatFunction): Tool {
  return { name, description: description ?? null, parameters: parameters ?? NO_PARAMETERS, strict: strict ?? false };
}

function choiceOf(choice: ChatToolChoice): ToolChoice {
  if (typeof choice === 'string') return { type: choice };
  if (choice.type !== 'function') return refuse('tool_choice', 'tool_choice must name a tool of type "function".');
  if (choice.function === undefined) return reject('tool_choice.function', 'tool_choice.function is required.');
  return { type: 'named', name: choice.function.name };
}

function allowedTools(choice: Exclude<ChatToolChoice, string>) {
  const allowed = choice.allowed_tools ?? reject('tool_choice.allowed_tools', 'tool_choice.allowed_tools is required.');
  return { mode: allowed.mode, names: allowed.tools.flatMap((tool) => (tool.function === undefined ? [] : [tool.function.name])) };
}

/** Throws RequestError for formats that are not known. */
export function responseFormatOf(format: ChatResponseFormat | null | undefined): ResponseFormat {
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
      const [pattern, field] = isGiven(format?.pattern)
        ? [format.pattern, 'response_format.pattern']
        : [format?.value, 'response_format.value'];
      return typeof pattern === 'string' && pattern !== ''
        ? { type: 'regex', pattern, field }
        : reject(field, `${field} must be a regular expression.`);
    }
    case 'json_schema': {
      if (format?.json_schema === undefined && isGiven(format?.schema)) {
        return { type: 'json_schema', name: 'output', schema: format.schema, strict: true, field: 'response_format.schema' };
      }
      const given = format?.json_schema ?? reject('response_format.json_schema', 'response_format.json_schema is required.');
      return { type: 'json_schema', name: given.name, schema: given.schema ?? {}, strict: given.strict ?? false };
    }
    default:
      return refuse('response_format', 'response_format must be of type "text", "json_object", "json_schema" or "regex".');
  }
}
