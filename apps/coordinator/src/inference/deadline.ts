/**
 * `Deadline`: restartable timeout for the next input from a client or provider.
 *
 * If the event loop was blocked, input that has already arrived is handled before the timeout fires.
 */
export class Deadline {
  readonly #onExpiry: () => void;
  #timer: NodeJS.Timeout | null = null;
  #expiry: NodeJS.Immediate | null = null;

  constructor(onExpiry: () => void) {
    this.#onExpiry = onExpiry;
  }

  /** True from `set` to `clear`, also after expiry. */
  get isSet(): boolean {
    return this.#timer !== null;
  }

  /** Starts the timeout, and replaces an earlier one. */
  set(ms: number): void {
    this.clear();
    // After timers, the event loop reads sockets and then runs immediates.
    this.#timer = setTimeout(() => {
      this.#expiry = setImmediate(this.#onExpiry);
    }, ms);
  }

  /** Restarts the timeout with the same duration, also after expiry. No effect before `set`. */
  renew(): void {
    this.#cancelExpiry();
    this.#timer?.refresh();
  }

  clear(): void {
    this.#cancelExpiry();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #cancelExpiry(): void {
    if (this.#expiry !== null) clearImmediate(this.#expiry);
    this.#expiry = null;
  }
}
