/** Tools, tool choice and text format as the Responses format spells them. */
import { isGiven, refuse, reject } from '../refusal.js';
import type { ResponseFormat, Tool, ToolChoice } from '../request.js';
import { choiceAmong, NO_PARAMETERS, requireDistinctNames, toolsNamed } from '../tools.js';
import type { ResponsesRequest, ResponsesTool, ResponsesToolChoice } from './schema.js';

/** Throws RequestError where a call is demanded that cannot be made. */
export function toolsOf(body: ResponsesRequest): { readonly tools: readonly Tool[]; readonly toolChoice: ToolChoice } {
  const tools = (body.tools ?? []).flatMap(functionTool);
  requireDistinctNames(tools);
  const choice = body.tool_choice ?? 'auto';
  if (typeof choice !== 'string' && choice.type === 'allowed_tools') {
    const names = choice.tools ?? reject('tool_choice.tools', 'tool_choice.tools is required.');
    const allowed = toolsNamed(
      tools,
      names.flatMap(({ name }) => (name === undefined ? [] : [name])),
    );
    return { tools: allowed, toolChoice: choiceAmong(allowed, { type: choice.mode ?? 'auto' }) };
  }
  return { tools, toolChoice: choiceAmong(tools, choiceOf(choice)) };
}

/** Tools of other types (namespace, web_search, custom and whatever comes) are tolerated, and not offered to the model. */
function functionTool(tool: ResponsesTool, index: number): Tool[] {
  if (tool.type !== 'function') return [];
  const name = tool.name ?? reject(`tools[${index}].name`, `tools[${index}].name is required.`);
  return [{ name, description: tool.description ?? null, parameters: tool.parameters ?? NO_PARAMETERS, strict: tool.strict ?? false }];
}

function choiceOf(choice: ResponsesToolChoice): ToolChoice {
  if (typeof choice === 'string') return { type: choice };
  if (choice.type !== 'function') return refuse('tool_choice', 'tool_choice must name a tool of type "function".');
  return { type: 'named', name: choice.name ?? reject('tool_choice.name', 'tool_choice.name is required.') };
}

/** Throws RequestError for formats that are not known. */
export function textFormatOf({ text }: ResponsesRequest): ResponseFormat {
  const format = text?.format;
  if (!isGiven(format)) return { type: 'text' };
  switch (format.type) {
    case 'text':
    case 'json_object':
      return { type: format.type };
    case 'json_schema': {
      const name = format.name ?? reject('text.format.name', 'text.format.name is required.');
      const schema = format.schema ?? reject('text.format.schema', 'text.format.schema is required.');
      return { type: 'json_schema', name, schema, strict: format.strict ?? false };
    }
    default:
      return refuse('text.format', 'text.format must be of type "text", "json_object" or "json_schema".');
  }
}
