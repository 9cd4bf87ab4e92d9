/** Asks the owner a question whose answer is no unless they say yes. */
import { Asker } from './prompt.js';

/** Throws BrokenOff where the owner wants no more questions (Ctrl-C, the end of the input): that is no answer. */
export async function confirm(question: string): Promise<boolean> {
  return /^y(es)?$/i.test(await new Asker().ask(`${question} [y/N]`, ''));
}
