/**
 * Rows that nobody waits for: what is new is gathered by its key for a moment and written with others. Of one key the newest counts.
 * What a crash takes with it is that moment; what a database refuses waits for the next time, up to a bound.
 */
import { BoundedMap } from '../limits/bounded-map.js';

export interface WriteBehindQueueOptions<Key, Value> {
  /** Writes some of them, in the order in which they came. */
  readonly write: (piece: readonly (readonly [Key, Value])[]) => Promise<unknown>;
  /** After everything that waited was written. */
  readonly onWritten?: () => Promise<void>;
  readonly onWriteError: (error: unknown) => void;
  readonly everyMs: number;
  /** Most in one write. */
  readonly perWrite: number;
  /** Most that wait: beyond this the database is not there, and the oldest are given up. */
  readonly maxWaiting: number;
}

export class WriteBehindQueue<Key, Value> {
  readonly #options: WriteBehindQueueOptions<Key, Value>;
  readonly #waiting: BoundedMap<Key, Value>;
  readonly #timer: NodeJS.Timeout;
  #writing: Promise<void> | null = null;

  constructor(options: WriteBehindQueueOptions<Key, Value>) {
    this.#options = options;
    this.#waiting = new BoundedMap(options.maxWaiting);
    this.#timer = setInterval(() => void this.flush(), options.everyMs);
    this.#timer.unref();
  }

  put(key: Key, value: Value): void {
    this.#waiting.set(key, value);
  }

  /** What waits for this key. */
  get(key: Key): Value | undefined {
    return this.#waiting.get(key);
  }

  /** What is not written yet. */
  keys(): Iterable<Key> {
    return this.#waiting.keys();
  }

  /** Writes what waits. Concurrent calls share one write. Never rejects: what could not be written waits for the next time. */
  flush(): Promise<void> {
    this.#writing ??= this.#write()
      .catch(this.#options.onWriteError)
      .finally(() => {
        this.#writing = null;
      });
    return this.#writing;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    // The first may have begun before the newest came.
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
      // What came meanwhile waits for the next time.
      for (const [key, value] of piece) if (this.#waiting.get(key) === value) this.#waiting.delete(key);
    }
    await onWritten?.();
  }
}
