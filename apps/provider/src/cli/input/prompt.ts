/** Asks the owner questions on a terminal, one line each. What is broken off (Ctrl-C, the end of the input) ends the command. */
import { createInterface } from 'node:readline/promises';

/** The owner wants no more questions. */
export class PromptAborted extends Error {
  override name = 'PromptAborted';
}

export class Prompt {
  /** What was typed, or `byDefault` where nothing was. Throws {@link PromptAborted}. */
  async ask(question: string, byDefault: string): Promise<string> {
    // One for each question: between them the terminal is as always, and Ctrl-C reaches whatever runs.
    const lines = createInterface({ input: process.stdin, output: process.stdout });
    const broken = new AbortController();
    const breakOff = (): void => broken.abort();
    lines.once('SIGINT', breakOff);
    lines.once('close', breakOff);
    const shown = byDefault === '' ? '' : ` [${byDefault}]`;
    try {
      const typed = (await lines.question(`${question}${shown}: `, { signal: broken.signal })).trim();
      return typed === '' ? byDefault : typed;
    } catch (error) {
      if (broken.signal.aborted) throw new PromptAborted();
      throw error;
    } finally {
      lines.close();
    }
  }

  async yesOrNo(question: string, byDefault: boolean): Promise<boolean> {
    for (;;) {
      const answer = (await this.ask(`${question} (yes or no)`, byDefault ? 'yes' : 'no')).toLowerCase();
      if (answer === 'y' || answer === 'yes') return true;
      if (answer === 'n' || answer === 'no') return false;
    }
  }
}

/** Throws PromptAborted where the owner wants no more questions (Ctrl-C, the end of the input): that is no answer. */
export async function confirm(question: string): Promise<boolean> {
  return /^y(es)?$/i.test(await new Prompt().ask(`${question} [y/N]`, ''));
}
