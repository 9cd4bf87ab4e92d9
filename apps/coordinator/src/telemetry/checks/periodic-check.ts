/** `PeriodicCheck` reads a value at intervals and caches it, so that scrapes of the metrics wait for no query. */

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
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | null = null;
  #latest: { readonly value: Value; readonly at: number } | null = null;

  /** The first read starts at once. */
  constructor(options: PeriodicCheckOptions<Value>) {
    this.#options = options;
    this.#timer = setInterval(() => void this.run(), options.everyMs);
    this.#timer.unref();
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
    const { read, now, onError } = this.#options;
    this.#running ??= read()
      .then((value) => {
        this.#latest = { value, at: now() };
      })
      .catch(onError)
      .finally(() => {
        this.#running = null;
      });
    return this.#running;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }
}
