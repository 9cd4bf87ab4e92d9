/** Time limits: `Deadline` for a peer's next message, `within` for a promise. */

/** Time limit for a peer. After a pause of this process, unread messages are handled before the limit expires. */
export class Deadline {
  readonly #onExpiry: () => void;
  #timer: NodeJS.Timeout | null = null;
  #expiry: NodeJS.Immediate | null = null;

  /** The limit is not set until {@link set} is called. */
  constructor(onExpiry: () => void) {
    this.#onExpiry = onExpiry;
  }

  /** True from `set` to `clear`, also after expiry. */
  get isSet(): boolean {
    return this.#timer !== null;
  }

  /** Expires after this many milliseconds. Replaces an earlier limit. */
  set(ms: number): void {
    this.clear();
    // After timers, the event loop polls sockets and then runs immediates.
    this.#timer = setTimeout(() => {
      this.#expiry = setImmediate(this.#onExpiry);
    }, ms);
  }

  /** Restarts the full time from now, also after expiry. */
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

/** The value, or `'late'` after `ms`. The promise continues; other listeners still see a later rejection. */
export async function within<Value>(promise: Promise<Value>, ms: number): Promise<Value | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
