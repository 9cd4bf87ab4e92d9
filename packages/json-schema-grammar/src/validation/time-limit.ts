/** Time limit for code that may backtrack over clients' values and schemas. */
import { createContext, Script } from 'node:vm';

/** Thousands of times the duration of real schemas. The thread does nothing else meanwhile. */
const MAX_MS = 1000;

const TIMED_OUT = 'ERR_SCRIPT_EXECUTION_TIMEOUT';
const run = new Script('run()');
/** Shared by all calls: creating a context takes thirty times as long as a call. */
const sandbox: { run: () => void } = { run: () => {} };
const context = createContext(sandbox);

/** Result of the check, or null after a timeout or stack overflow. Errors of the check are rethrown. Not reentrant. */
export function withTimeLimit<T>(check: () => T): T | null {
  let answer: T | null = null;
  sandbox.run = () => {
    answer = check();
  };
  try {
    run.runInContext(context, { timeout: MAX_MS });
    return answer;
  } catch (error) {
    if (error instanceof RangeError || (error as NodeJS.ErrnoException).code === TIMED_OUT) return null;
    throw error;
  } finally {
    // The check refers to a client's schema.
    sandbox.run = () => {};
  }
}
