/** Converts tools, tool choice and text format of a Responses request to the internal form. */

import { isPresent, rejectInvalid, rejectUnsupported } from '../errors/reject.js';
import { newToolName } from '../fields.js';
import { isJsonObject } from '../json/json-value.js';
import type { ResponseFormat, Tool, ToolChoice } from '../request.js';
import { choiceAmong, NO_PARAMETERS, refuseToolType, requireDistinctNames, toolsNamed } from '../tools.js';
import type { ResponsesRequest, ResponsesTool, ResponsesToolChoice } from './schema.js';

/** Rule for the names of functions. Tools of other types may have other names. */
const NEW_TOOL = newToolName(128);
const NEW_TOOL_NAME = new RegExp(NEW_TOOL.pattern);

/** Tools that the model may call, and the tool choice. Throws RequestError on unsupported tools and impossible choices. */
export function toolsOf(body: ResponsesRequest): { readonly tools: readonly Tool[]; readonly toolChoice: ToolChoice } {
  const tools = (body.tools ?? []).flatMap(functionTool);
  requireDistinctNames(tools);
  const choice = body.tool_choice ?? 'auto';
  if (typeof choice !== 'string' && choice.type === 'allowed_tools') {
    const names = choice.tools ?? rejectInvalid('tool_choice.tools', 'tool_choice.tools is required.');
    const allowed = toolsNamed(
      tools,
      names.flatMap(({ name }) => (name === undefined ? [] : [name])),
    );
    return { tools: allowed, toolChoice: choiceAmong(allowed, { type: choice.mode ?? 'auto' }) };
  }
  return { tools, toolChoice: choiceAmong(tools, choiceOf(choice)) };
}

/** Whether the tool is one that Codex (OpenAI's coding agent) always sends but does not need. */
function isIgnoredTool({ type, external_web_access, format }: ResponsesTool, all: readonly ResponsesTool[]): boolean {
  switch (type) {
    case 'namespace':
      return true;
    case 'web_search':
      return isPresent(external_web_access) || all.some((tool) => tool.type === 'namespace');
    case 'custom':
      return isJsonObject(format) && format.type === 'grammar';
    default:
      return false;
  }
}

/** Paths and types of ignored tools, for `X-Inference-Ignored`. */
export function ignoredTools({ tools }: ResponsesRequest): readonly string[] {
  const all = tools ?? [];
  return all.flatMap((tool, index) => (isIgnoredTool(tool, all) ? [`tools[${index}] (${tool.type})`] : []));
}

function functionTool(tool: ResponsesTool, index: number, all: readonly ResponsesTool[]): Tool[] {
  if (isIgnoredTool(tool, all)) return [];
  if (tool.type !== 'function') return refuseToolType(tool.type, `tools[${index}]`);
  const field = `tools[${index}].name`;
  const name = tool.name ?? rejectInvalid(field, `${field} is required.`);
  if (!NEW_TOOL_NAME.test(name)) rejectInvalid(field, `${field} must be ${NEW_TOOL.description}.`);
  return [{ name, description: tool.description ?? null, parameters: tool.parameters ?? NO_PARAMETERS, strict: tool.strict ?? false }];
}

function choiceOf(choice: ResponsesToolChoice): ToolChoice {
  if (typeof choice === 'string') return { type: choice };
  if (choice.type !== 'function') return rejectUnsupported('tool_choice', 'tool_choice must name a tool of type "function".');
  return { type: 'named', name: choice.name ?? rejectInvalid('tool_choice.name', 'tool_choice.name is required.') };
}

/** Converts `text.format`; absent means plain text. Throws RequestError. */
export function textFormatOf({ text }: ResponsesRequest): ResponseFormat {
  const format = text?.format;
  if (!isPresent(format)) return { type: 'text' };
  switch (format.type) {
    case 'text':
    case 'json_object':
      if (isPresent(format.schema))
        rejectUnsupported('text.format.schema', 'text.format.schema belongs to the type "json_schema" and is not supported with another.');
      return { type: format.type };
    case 'json_schema': {
      const name = format.name ?? rejectInvalid('text.format.name', 'text.format.name is required.');
      const schema = format.schema ?? rejectInvalid('text.format.schema', 'text.format.schema is required.');
      return { type: 'json_schema', name, schema, strict: format.strict ?? false };
    }
    default:
      return rejectUnsupported('text.format', 'text.format must be of type "text", "json_object" or "json_schema".');
  }
}
