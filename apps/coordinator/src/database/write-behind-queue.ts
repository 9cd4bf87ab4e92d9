/**
 * `WriteBehindQueue`: queues rows in memory and writes them in batches. The newest value of a key replaces an older one.
 *
 * Failed writes are retried. A crash loses the queued rows.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { CoalescingRunner } from '../coalescing-runner.js';

interface WriteBehindQueueOptions<Key, Value> {
  /** Writes some of the rows, in the order in which they were queued. */
  readonly write: (piece: readonly (readonly [Key, Value])[]) => Promise<unknown>;
  /** Called after a flush has written all its rows. */
  readonly onWritten?: () => Promise<void>;
  readonly onWriteError: (error: unknown) => void;
  readonly everyMs: number;
  /** Maximum rows per write. */
  readonly perWrite: number;
  /** Maximum queued rows. Above it, the oldest are dropped, as after a long outage of the database. */
  readonly maxWaiting: number;
}

export interface WriteBacklog {
  readonly rows: number;
  readonly maxRows: number;
}

export class WriteBehindQueue<Key, Value> {
  readonly #options: WriteBehindQueueOptions<Key, Value>;
  readonly #waiting: BoundedMap<Key, Value>;
  readonly #timer: NodeJS.Timeout;
  readonly #flushes = new CoalescingRunner(() => this.#write().catch(this.#options.onWriteError));

  constructor(options: WriteBehindQueueOptions<Key, Value>) {
    this.#options = options;
    this.#waiting = new BoundedMap(options.maxWaiting);
    this.#timer = setInterval(() => {
      if (!this.#flushes.isRunning) void this.flush();
    }, options.everyMs);
    this.#timer.unref();
  }

  put(key: Key, value: Value): void {
    this.#waiting.set(key, value);
  }

  get(key: Key): Value | undefined {
    return this.#waiting.get(key);
  }

  keys(): Iterable<Key> {
    return this.#waiting.keys();
  }

  get backlog(): WriteBacklog {
    return { rows: this.#waiting.size, maxRows: this.#options.maxWaiting };
  }

  /** Writes the rows that are queued now. Concurrent calls share writes. If a write fails, its rows and the following stay queued. */
  flush(): Promise<void> {
    return this.#flushes.run();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    // Twice, because rows may be queued during the first flush.
    await this.flush();
    await this.flush();
  }

  async #write(): Promise<void> {
    const { write, perWrite, onWritten } = this.#options;
    const batch = [...this.#waiting];
    if (batch.length === 0) return;
    for (let start = 0; start < batch.length; start += perWrite) {
      const piece = batch.slice(start, start + perWrite);
      await write(piece);
      // A newer value of the same key, set during the write, stays queued.
      for (const [key, value] of piece) if (this.#waiting.get(key) === value) this.#waiting.delete(key);
    }
    await onWritten?.();
  }
}
