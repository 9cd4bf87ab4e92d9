/** Lets the owner interrupt a waiting command, and ends the command in an orderly way. */
import { EXIT } from '../exit-codes.js';

/** Signal that the first SIGINT or SIGTERM aborts with `reason`. */
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
