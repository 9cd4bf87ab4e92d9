/** `GatheredWrites` buffers the writes of a stream until the end of the event loop turn: one system call instead of many. */

interface CorkedStream {
  cork(): void;
  uncork(): void;
}

export class GatheredWrites {
  #isGathering = false;

  constructor(private readonly stream: CorkedStream) {}

  /** Begins to buffer writes. Call before each write. */
  begin(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    this.stream.cork();
    setImmediate(() => this.flush());
  }

  flush(): void {
    if (!this.#isGathering) return;
    this.#isGathering = false;
    this.stream.uncork();
  }
}
