/** `withTimeLimit` limits the run time of synchronous code: validation of a client's schema can take exponential time. */
import { createContext, Script } from 'node:vm';

/** Thousands of times longer than real schemas need. The check blocks its thread meanwhile. */
const MAX_MS = 1000;

const TIMED_OUT = 'ERR_SCRIPT_EXECUTION_TIMEOUT';
const run = new Script('run()');
/** Shared by all calls: creating a context takes thirty times as long as a call. */
const sandbox: { run: () => void } = { run: () => {} };
const context = createContext(sandbox);

/** Returns the check's result; null after a timeout or stack overflow. Rethrows errors of the check. Not reentrant. */
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
    // Releases the client's schema, to which the check refers.
    sandbox.run = () => {};
  }
}
