/** Runs work until SIGINT or SIGTERM, after which the work can clean up. */
import { StartupError } from '../config/startup-error.js';

/** Aborts `signal` at SIGINT or SIGTERM. The work rejects then; the process ends by the command's exit code. */
export async function untilSignalled<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = (name: string): void => controller.abort(new StartupError(`Interrupted by ${name}.`));
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  try {
    return await work(controller.signal);
  } catch (error) {
    // Some functions reject with an error of their own when they are aborted.
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}
