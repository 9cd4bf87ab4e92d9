/** Orderly end of a waiting command on interruption. */
import { EXIT } from '../exit-codes.js';

/** Runs `work`. On SIGINT or SIGTERM aborts its signal, prints `sentence`, and returns a failure code. */
export async function untilInterrupted(sentence: string, work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const broken = new AbortController();
  const stop = (): void => broken.abort();
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    return await work(broken.signal);
  } catch (error) {
    if (!broken.signal.aborted) throw error;
    process.stderr.write(`\n${sentence}\n`);
    return EXIT.needsOwner;
  } finally {
    process.removeListener('SIGINT', stop);
    process.removeListener('SIGTERM', stop);
  }
}
