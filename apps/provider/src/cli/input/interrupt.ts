/** Turns Ctrl-C (SIGINT) and SIGTERM into an abort, so that a waiting command ends in an orderly way. */
import { EXIT } from '../exit-codes.js';

/** Returns a signal that the first SIGINT or SIGTERM aborts with `reason`. A second one ends the process. */
export function abortOnInterrupt(reason?: Error): AbortSignal {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort(reason));
  return interrupted.signal;
}

/** Runs `work`. SIGINT and SIGTERM abort its signal. If `work` then rejects, prints `sentence` and returns a failure code. */
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
