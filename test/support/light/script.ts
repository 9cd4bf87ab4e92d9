/** What a light agent is to say and how fast: the client writes it into the prompt, so both sides know the right answer. */

export interface Script {
  readonly words: number;
  /** Pause before each word, in milliseconds. */
  readonly everyMs?: number;
  /** Characters of each word; 8 by default. */
  readonly length?: number;
}

/** The prompt that asks for it. */
export function promptOf(script: Script): string {
  return JSON.stringify(script);
}

/** The script in a prompt; a short answer where there is none. */
export function scriptIn(prompt: string): Script {
  try {
    const value = JSON.parse(prompt) as Script;
    if (Number.isInteger(value.words)) return value;
  } catch {
    // A prompt of another kind.
  }
  return { words: 4 };
}

export function wordOf(script: Script, index: number): string {
  return ` ${String(index).padStart((script.length ?? 8) - 1, 'w')}`;
}

/** The whole text. */
export function textOf(script: Script): string {
  return Array.from({ length: script.words }, (_, index) => wordOf(script, index)).join('');
}
