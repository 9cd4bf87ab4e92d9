/** `Prompt`: questions to the owner on a terminal. Ctrl-C and the end of input abort the command. */
import { createInterface } from 'node:readline/promises';

/** The owner aborted the questions. */
export class PromptAborted extends Error {
  override name = 'PromptAborted';
}

export class Prompt {
  /** Typed answer, or `byDefault` if empty. Throws {@link PromptAborted}. */
  async ask(question: string, byDefault: string): Promise<string> {
    // A readline per question, so that Ctrl-C reaches the command between questions.
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
      process.stderr.write(`Type yes or no, not ${JSON.stringify(answer)}.\n`);
    }
  }
}

/** Yes-or-no question with default no. Throws PromptAborted on Ctrl-C or the end of input. */
export async function confirm(question: string): Promise<boolean> {
  return /^y(es)?$/i.test(await new Prompt().ask(`${question} [y/N]`, ''));
}
