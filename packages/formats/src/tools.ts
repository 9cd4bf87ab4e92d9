/** What holds for the tools of a request in every format, after each format has read its own spelling of them. */
import { refuse, reject } from './refusal.js';
import type { Tool, ToolChoice } from './request.js';

/** Parameters of a tool that names none: it takes no arguments. */
export const NO_PARAMETERS = { type: 'object', properties: {} } as const;

/** Tools that are called by the same name could not be told apart. Throws RequestError. */
export function requireDistinctNames(tools: readonly Tool[]): void {
  const names = new Set<string>();
  for (const { name } of tools) {
    if (names.has(name)) reject('tools', 'tools must have different names.');
    names.add(name);
  }
}

/** The choice, if these tools allow it. Throws RequestError where a call is demanded that cannot be made. */
export function choiceAmong(tools: readonly Tool[], choice: ToolChoice): ToolChoice {
  switch (choice.type) {
    case 'required':
      if (tools.length === 0) reject('tool_choice', 'tool_choice demands a call, but tools has none that can be called.');
      return choice;
    case 'named':
      if (!tools.some(({ name }) => name === choice.name)) {
        reject('tool_choice', 'tool_choice names a tool that tools does not have, or one of a type that is not served.');
      }
      return choice;
    case 'auto':
    case 'none':
      return choice;
    default:
      return choice satisfies never;
  }
}

/** The tools of these names. Throws RequestError for a name that none of them has. */
export function toolsNamed(tools: readonly Tool[], names: readonly string[]): readonly Tool[] {
  const allowed = new Set(names);
  const chosen = tools.filter(({ name }) => allowed.has(name));
  if (chosen.length !== allowed.size) refuse('tool_choice', 'tool_choice allows tools that tools does not have or that are not served.');
  return chosen;
}
