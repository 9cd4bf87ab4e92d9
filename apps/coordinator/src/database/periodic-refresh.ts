/** `PeriodicRefresh`: calls a function that reads rows into a cache, at regular intervals and whenever `refreshNow` is called. */
import { withTimeLimit } from '@inference/protocol';
import { CoalescingRunner } from '../coalescing-runner.js';

/** Time after which a read that has not ended no longer delays the next one. */
export const MAX_READ_MS = 40_000;

interface PeriodicRefreshOptions {
  readonly read: () => Promise<void>;
  readonly everyMs: number;
  /** Called if a read after the first one failed. The cached rows stay in use. */
  readonly onError: (error: unknown) => void;
}

export class PeriodicRefresh {
  readonly #options: PeriodicRefreshOptions;
  readonly #reads: CoalescingRunner;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: PeriodicRefreshOptions) {
    const { read, onError } = options;
    this.#options = options;
    this.#reads = new CoalescingRunner(() => withTimeLimit(read().catch(onError), MAX_READ_MS));
  }

  /** Reads for the first time, then starts the timer. Rejects if the read fails. The caller must call `close`. */
  async begin(): Promise<void> {
    const { read, everyMs } = this.#options;
    await read();
    this.#timer = setInterval(() => void this.refreshNow(), everyMs);
    this.#timer.unref();
  }

  /** Reads now, or after the running read. Rejects only if `onError` throws. */
  refreshNow(): Promise<void> {
    return this.#reads.run();
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }
}
