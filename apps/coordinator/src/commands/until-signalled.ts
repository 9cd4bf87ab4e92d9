/** `untilSignalled` runs the work of the commands `backup` and `restore`, and cancels the work on SIGINT or SIGTERM. */
import { StartupError } from '../config/startup-error.js';

/** `signal` aborts at SIGINT or SIGTERM. `work` must then clean up and reject. Throws StartupError if interrupted. */
export async function untilSignalled<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = (name: string): void => controller.abort(new StartupError(`Interrupted by ${name}.`));
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  try {
    return await work(controller.signal);
  } catch (error) {
    // Aborted work may reject with any error, so the signal's reason replaces it.
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}
