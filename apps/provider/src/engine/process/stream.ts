/** What the daemon asked of one running stream: stop it, hold it, go on. */

export class StreamControl {
  /** Called once when the stream is cancelled; whoever waits for something on its behalf sets it. */
  onCancel: (() => void) | null = null;
  #cancelled = false;
  #paused = false;
  #wake: (() => void) | null = null;

  /** `pausable` false: the stream runs on whatever the daemon says, because others wait behind it. */
  constructor(
    readonly job: number,
    private readonly pausable: boolean,
  ) {}

  get cancelled(): boolean {
    return this.#cancelled;
  }

  get paused(): boolean {
    return this.#paused;
  }

  cancel(): void {
    this.#cancelled = true;
    this.#release();
    this.onCancel?.();
    this.onCancel = null;
  }

  pause(): void {
    this.#paused = this.pausable && !this.#cancelled;
  }

  resume(): void {
    this.#paused = false;
    this.#release();
  }

  /** Settles when the stream may go on, or was cancelled. */
  released(): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#paused || this.#cancelled) resolve();
      else this.#wake = resolve;
    });
  }

  #release(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
