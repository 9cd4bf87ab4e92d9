/** Tools, tool choice and response format as chat completions spell them. */
import { refuse, reject } from '../refusal.js';
import type { ResponseFormat, Tool, ToolChoice } from '../request.js';
import { choiceAmong, NO_PARAMETERS, requireDistinctNames, toolsNamed } from '../tools.js';
import type { ChatCompletionRequest, ChatResponseFormat, ChatTool, ChatToolChoice } from './schema.js';

/** Throws RequestError where a call is demanded that cannot be made. */
export function toolsOf(body: ChatCompletionRequest): { readonly tools: readonly Tool[]; readonly toolChoice: ToolChoice } {
  const tools = (body.tools ?? []).flatMap(functionTool);
  requireDistinctNames(tools);
  const choice = body.tool_choice ?? 'auto';
  if (typeof choice !== 'string' && choice.type === 'allowed_tools') {
    const { mode, names } = allowedTools(choice);
    const allowed = toolsNamed(tools, names);
    return { tools: allowed, toolChoice: choiceAmong(allowed, { type: mode }) };
  }
  return { tools, toolChoice: choiceAmong(tools, choiceOf(choice)) };
}

function functionTool(tool: ChatTool, index: number): Tool[] {
  if (tool.type !== 'function') return [];
  if (tool.function === undefined) return reject(`tools[${index}].function`, `tools[${index}].function is required.`);
  const { name, description, parameters, strict } = tool.function;
  return [{ name, description: description ?? null, parameters: parameters ?? NO_PARAMETERS, strict: strict ?? false }];
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
    case 'json_object':
      return { type: 'json_object' };
    case 'json_schema': {
      const given = format?.json_schema ?? reject('response_format.json_schema', 'response_format.json_schema is required.');
      return { type: 'json_schema', name: given.name, schema: given.schema ?? {}, strict: given.strict ?? false };
    }
    default:
      return refuse('response_format', 'response_format must be of type "text", "json_object" or "json_schema".');
  }
}
