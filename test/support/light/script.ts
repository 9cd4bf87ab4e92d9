/** `Script`: the response of a light agent. A client sends its script as the prompt, and so knows the expected text. */

/** Prompt tokens that every response reports. */
export const PROMPT_TOKENS = 7;

export interface Script {
  readonly words: number;
  /** Pause before each word, in milliseconds. */
  readonly everyMs?: number;
  /** Characters of each word; 8 by default. */
  readonly length?: number;
  /** Text of each word, instead of its number. */
  readonly text?: string;
}

export function promptOf(script: Script): string {
  return JSON.stringify(script);
}

/** Script inside a prompt. Without a script: four words. */
export function scriptIn(prompt: string): Script {
  try {
    const value = JSON.parse(prompt) as Script;
    if (Number.isInteger(value.words)) return value;
  } catch {
    // The prompt contains no script.
  }
  return { words: 4 };
}

export function wordOf(script: Script, index: number): string {
  if (script.text !== undefined) return script.text;
  return ` ${String(index).padStart((script.length ?? 8) - 1, 'w')}`;
}

export function textOf(script: Script): string {
  return Array.from({ length: script.words }, (_, index) => wordOf(script, index)).join('');
}
