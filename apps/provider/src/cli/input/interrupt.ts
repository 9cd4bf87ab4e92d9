/** Lets a command that waits end in order when its owner breaks it off. */
import { EXIT } from '../exit-codes.js';

/** Runs `work`; on Ctrl-C or a request to end, its signal is aborted, `sentence` is said, and the command has failed. */
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
