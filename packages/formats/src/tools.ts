/** Validation of tools and tool choice that all formats share. */
import { rejectInvalid, rejectUnsupported } from './errors/reject.js';
import type { Tool, ToolChoice } from './request.js';

/** JSON Schema for a tool without parameters. */
export const NO_PARAMETERS = { type: 'object', properties: {} } as const;

/** Throws RequestError on duplicate tool names. */
export function requireDistinctNames(tools: readonly Tool[], field = 'tools'): void {
  const names = new Set<string>();
  for (const { name } of tools) {
    if (names.has(name)) rejectInvalid(field, `${field} must have different names.`);
    names.add(name);
  }
}

/** Throws RequestError for an unsupported tool type. */
export function refuseToolType(type: string, path: string): never {
  return rejectUnsupported(path, `${path} is ${quotedType(type)}, which is not supported here. Remove it, or offer it as a function.`);
}

/** Phrase for an error message. Repeats the type only if it looks like one; otherwise it may be client content. */
export function quotedType(type: string): string {
  return /^[a-z][a-z0-9_.:-]{0,63}$/i.test(type) ? `a tool of type "${type}"` : 'a tool of a type that is not known';
}

/** Returns the tool choice. Throws RequestError if it requires a call and no suitable tool exists. */
export function choiceAmong(tools: readonly Tool[], choice: ToolChoice): ToolChoice {
  switch (choice.type) {
    case 'required':
      if (tools.length === 0) rejectInvalid('tool_choice', 'tool_choice requires a call, but there is no tool that can be called.');
      return choice;
    case 'named':
      if (!tools.some(({ name }) => name === choice.name)) {
        rejectInvalid('tool_choice', 'tool_choice names a tool that is not in tools, or that is not supported.');
      }
      return choice;
    case 'auto':
    case 'none':
      return choice;
    default:
      return choice satisfies never;
  }
}

/** Tools with these names. Throws RequestError on an unknown name. */
export function toolsNamed(tools: readonly Tool[], names: readonly string[]): readonly Tool[] {
  const allowed = new Set(names);
  const chosen = tools.filter(({ name }) => allowed.has(name));
  if (chosen.length !== allowed.size)
    rejectUnsupported('tool_choice', 'tool_choice allows tools that are not in tools, or that are not supported.');
  return chosen;
}
