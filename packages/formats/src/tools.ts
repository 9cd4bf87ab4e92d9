/** What holds for the tools of a request in every format, after each format has read its own spelling of them. */
import { refuse, reject } from './refusal.js';
import type { Tool, ToolChoice } from './request.js';

/** Parameters of a tool that names none: it takes no arguments. */
export const NO_PARAMETERS = { type: 'object', properties: {} } as const;

/** Tools that are called by the same name could not be told apart. Throws RequestError. */
export function requireDistinctNames(tools: readonly Tool[], field = 'tools'): void {
  const names = new Set<string>();
  for (const { name } of tools) {
    if (names.has(name)) reject(field, `${field} must have different names.`);
    names.add(name);
  }
}

/** Refuses a tool that is no function of the client's, by its type. Throws RequestError. */
export function refuseToolType(type: string, path: string): never {
  return refuse(path, `${path} is ${quotedType(type)}, which is not supported here. Remove it, or offer it as a function.`);
}

/** Types of tools are told where they read as such: any other text in their place is the client's own. */
export function quotedType(type: string): string {
  return /^[a-z][a-z0-9_.:-]{0,63}$/i.test(type) ? `a tool of type "${type}"` : 'a tool of a type that is not known';
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
