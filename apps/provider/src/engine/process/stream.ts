/** What the daemon asked of one running stream: stop it, hold it, go on. */

export class StreamControl {
  /** Called at every change; whoever runs the stream sets it. */
  onChange: () => void = () => {};
  #cancelled = false;
  #paused = false;

  constructor(readonly job: number) {}

  get cancelled(): boolean {
    return this.#cancelled;
  }

  get paused(): boolean {
    return this.#paused;
  }

  cancel(): void {
    this.#cancelled = true;
    this.#paused = false;
    this.onChange();
  }

  pause(): void {
    this.#paused = !this.#cancelled;
  }

  resume(): void {
    this.#paused = false;
    this.onChange();
  }
}
