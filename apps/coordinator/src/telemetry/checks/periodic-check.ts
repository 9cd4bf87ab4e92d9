/** `PeriodicCheck` reads a value at intervals and caches it, so that scrapes of the metrics wait for no query. */
import { RepeatedTask } from '../../repeated-task.js';

interface PeriodicCheckOptions<Value> {
  /** Used in logs, and as the metric label `check`. */
  readonly name: string;
  readonly everyMs: number;
  readonly read: () => Promise<Value>;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

export class PeriodicCheck<Value> {
  readonly #options: PeriodicCheckOptions<Value>;
  readonly #repeated: RepeatedTask;
  #latest: { readonly value: Value; readonly at: number } | null = null;

  /** The first read starts at once. */
  constructor(options: PeriodicCheckOptions<Value>) {
    this.#options = options;
    const { everyMs, read, now, onError } = options;
    const update = async (): Promise<void> => {
      const value = await read();
      this.#latest = { value, at: now() };
    };
    this.#repeated = new RepeatedTask(everyMs, update, onError);
    void this.run();
  }

  get name(): string {
    return this.#options.name;
  }

  /** Newest successful value, and its time in milliseconds since 1970. Null: none yet. */
  get latest(): { readonly value: Value; readonly at: number } | null {
    return this.#latest;
  }

  /** Reads now, or waits for a read in progress. Never rejects. */
  run(): Promise<void> {
    return this.#repeated.run();
  }

  close(): Promise<void> {
    return this.#repeated.stop();
  }
}
