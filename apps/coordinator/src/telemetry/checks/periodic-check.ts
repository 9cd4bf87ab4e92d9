/** `PeriodicCheck`: reads and caches a value by a timer. A scrape of the metrics thus never waits for a query. */

interface PeriodicCheckOptions<Value> {
  /** Name in logs, and value of the metric label `check`. */
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

  /** The first reading starts at once. */
  constructor(options: PeriodicCheckOptions<Value>) {
    this.#options = options;
    this.#timer = setInterval(() => void this.run(), options.everyMs);
    this.#timer.unref();
    void this.run();
  }

  get name(): string {
    return this.#options.name;
  }

  /** Latest successful reading, and its time in milliseconds since 1970. Null: none has succeeded yet. */
  get latest(): { readonly value: Value; readonly at: number } | null {
    return this.#latest;
  }

  /** Reads now, or waits for a running reading. Never rejects. */
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
