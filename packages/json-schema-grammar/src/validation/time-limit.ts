/**
 * Time limit for code that may backtrack over a client's values and schemas. A check that exceeds the limit is aborted, and the
 * caller decides.
 */
import { createContext, Script } from 'node:vm';

/** Thousands of times what real schemas take. The thread does nothing else meanwhile. */
const MAX_MS = 1000;

const TIMED_OUT = 'ERR_SCRIPT_EXECUTION_TIMEOUT';
const ask = new Script('ask()');
/** Shared by all calls: creating a context takes thirty times as long as a call. */
const asked: { ask: () => void } = { ask: () => {} };
const context = createContext(asked);

/** Result of the check, or null after a timeout or stack overflow. Errors of the check are rethrown. Not reentrant. */
export function withTimeLimit<T>(question: () => T): T | null {
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
