/**
 * Frees what nothing will settle any more: at the start what an earlier process left reserved, and every minute whatever
 * slipped through, of this coordinator and of those that are gone. Jobs that this process still answers for are left alone.
 */
import type { JobId } from '@inference/protocol';
import type { Ledger } from '../../billing/ledger/ledger.js';

export interface SweeperOptions {
  readonly ledger: Pick<Ledger, 'sweep'>;
  readonly liveJobs: () => ReadonlySet<JobId>;
  readonly now: () => number;
  readonly everyMs?: number;
  readonly onSwept: (released: number) => void;
  readonly onError: (error: unknown) => void;
}

const EVERY_MS = 60_000;
/** A hold of this process is live before it is made, so this much only covers clocks that are set. */
const YOUNG_MS = 60_000;

/** Sweeps once, and from then on now and again. Rejects when the first sweep fails. Returns the function that ends it. */
export async function startSweeper(options: SweeperOptions): Promise<() => Promise<void>> {
  const { ledger, liveJobs, now, onSwept, onError } = options;
  const sweep = async (): Promise<void> => {
    const released = await ledger.sweep(liveJobs(), now() - YOUNG_MS);
    if (released > 0) onSwept(released);
  };
  await sweep();
  let running: Promise<void> | null = null;
  const timer = setInterval(() => {
    running ??= sweep()
      .catch(onError)
      .finally(() => {
        running = null;
      });
  }, options.everyMs ?? EVERY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
