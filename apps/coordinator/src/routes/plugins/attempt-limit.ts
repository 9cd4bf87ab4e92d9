/**
 * `AttemptLimit` counts attempts, such as passwords, per name, such as an e-mail address, and window. Callers that limit only failures
 * refund the others.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { AttemptCounter, AttemptCounters, RecentNames } from '../../limits/attempt-counters.js';

interface AttemptLimitOptions {
  /** Maximum attempts per name and window that were not refunded. */
  readonly maxAttempts: number;
  readonly windowMs: number;
  readonly now: () => number;
  /** Maximum names counted at a time. The oldest are evicted. */
  readonly maxNames?: number;
}

interface Attempts {
  count: number;
  readonly until: number;
}

const MAX_NAMES = 20_000;

export class AttemptLimit implements AttemptCounter {
  readonly #options: AttemptLimitOptions;
  readonly #attempts = new Map<string, Attempts>();

  constructor(options: AttemptLimitOptions) {
    this.#options = options;
  }

  /** Counts an attempt. Returns null, or the number of seconds to wait if the attempt must be refused. */
  count(name: string): number | null {
    const now = this.#options.now();
    let attempts = this.#attempts.get(name);
    // After the clock is set back, a name must not stay locked out for longer than the window.
    if (attempts === undefined || attempts.until <= now || attempts.until > now + this.#options.windowMs) {
      this.#attempts.delete(name);
      attempts = { count: 0, until: now + this.#options.windowMs };
      this.#forgetOldest();
      this.#attempts.set(name, attempts);
    }
    if (attempts.count >= this.#options.maxAttempts) return Math.max(1, Math.ceil((attempts.until - now) / 1000));
    attempts.count++;
    return null;
  }

  refund(name: string): void {
    const attempts = this.#attempts.get(name);
    if (attempts !== undefined && attempts.count > 0) attempts.count--;
  }

  #forgetOldest(): void {
    if (this.#attempts.size < (this.#options.maxNames ?? MAX_NAMES)) return;
    const [oldest] = this.#attempts.keys();
    if (oldest !== undefined) this.#attempts.delete(oldest);
  }
}

/** Counters in the memory of this process, for a coordinator without peers. */
export function localAttempts(now: () => number): AttemptCounters {
  return {
    counter: (_limit, options) => new AttemptLimit({ ...options, now }),
    recentNames: (_list, { lifetimeMs }): RecentNames => {
      const ends = new BoundedMap<string, number>(MAX_NAMES);
      return { has: (name) => (ends.get(name) ?? 0) > now(), add: (name) => void ends.set(name, now() + lifetimeMs) };
    },
  };
}
