/**
 * Questions about values and schemas of clients, asked of code that looks at every way in which a value may fit. A schema can have
 * more of them than there is time for, so that the question is given up, and whoever asked decides what follows from that.
 */
import { createContext, Script } from 'node:vm';

/** Thousands of times of what schemas take that people write. Nothing else happens in its thread meanwhile. */
const MAX_MS = 1000;

const TIMED_OUT = 'ERR_SCRIPT_EXECUTION_TIMEOUT';
const ask = new Script('ask()');
/** One for all questions: making one takes thirty times as long as asking. */
const asked: { ask: () => void } = { ask: () => {} };
const context = createContext(asked);

/** The answer, or null where it would have taken too long or too deep. What the question throws is thrown. It must ask none itself. */
export function decided<T>(question: () => T): T | null {
  let answer: T | null = null;
  asked.ask = () => {
    answer = question();
  };
  try {
    ask.runInContext(context, { timeout: MAX_MS });
    return answer;
  } catch (error) {
    if (error instanceof RangeError || (error as NodeJS.ErrnoException).code === TIMED_OUT) return null;
    throw error;
  } finally {
    // The question holds on to a client's schema.
    asked.ask = () => {};
  }
}
