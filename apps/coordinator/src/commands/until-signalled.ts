/** `untilSignalled`: runs the work of `backup` and `restore`, and cancels it at SIGINT or SIGTERM. */
import { StartupError } from '../config/startup-error.js';

/** `signal` aborts at SIGINT or SIGTERM. `work` then cleans up and rejects, and the command ends with an exit code. */
export async function untilSignalled<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = (name: string): void => controller.abort(new StartupError(`Interrupted by ${name}.`));
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  try {
    return await work(controller.signal);
  } catch (error) {
    // An aborted function may reject with another error.
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}
