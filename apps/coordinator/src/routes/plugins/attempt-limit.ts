/**
 * Stops those who try codes that they were not given. Wrong tries are counted by name (an account, an address); a try counts
 * from its beginning, so that a thousand at once are no more than a thousand in a row, and a right one is taken back.
 */

export interface AttemptLimitOptions {
  /** Wrong tries of one name within the window. */
  readonly maxAttempts: number;
  readonly windowMs: number;
  readonly now: () => number;
  /** Names that are counted at a time; the oldest are forgotten beyond it. */
  readonly maxNames?: number;
}

interface Attempts {
  count: number;
  readonly until: number;
}

const MAX_NAMES = 20_000;

export class AttemptLimit {
  readonly #options: AttemptLimitOptions;
  readonly #tries = new Map<string, Attempts>();

  constructor(options: AttemptLimitOptions) {
    this.#options = options;
  }

  /** Counts a try. Seconds to wait where there were too many; then it is not to be answered. */
  count(name: string): number | null {
    const now = this.#options.now();
    let tries = this.#tries.get(name);
    // A clock that was set back must not lock anybody out for longer than the window.
    if (tries === undefined || tries.until <= now || tries.until > now + this.#options.windowMs) {
      this.#tries.delete(name);
      tries = { count: 0, until: now + this.#options.windowMs };
      this.#forgetOldest();
      this.#tries.set(name, tries);
    }
    if (tries.count >= this.#options.maxAttempts) return Math.max(1, Math.ceil((tries.until - now) / 1000));
    tries.count++;
    return null;
  }

  /** The try was right. */
  refund(name: string): void {
    const tries = this.#tries.get(name);
    if (tries !== undefined && tries.count > 0) tries.count--;
  }

  #forgetOldest(): void {
    if (this.#tries.size < (this.#options.maxNames ?? MAX_NAMES)) return;
    const [oldest] = this.#tries.keys();
    if (oldest !== undefined) this.#tries.delete(oldest);
  }
}
