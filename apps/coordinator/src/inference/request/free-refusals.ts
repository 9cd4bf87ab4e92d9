/**
 * `FreeRefusals` limits how many sealed (end-to-end encrypted) requests of an API key providers refuse for free per hour, by number and
 * bytes, at this coordinator.
 *
 * Checked before a request runs, so concurrent requests may exceed the limit.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';

const WINDOW_MS = 3_600_000;
export const MAX_FREE_REFUSALS = 60;
/** Maximum bytes of refused sealed requests per key and hour. */
const MAX_FREE_BYTES = 64 * 1024 * 1024;
const MAX_KEYS = 20_000;

interface Usage {
  /** Start of the hour. */
  readonly since: number;
  /** Refused requests since then, and their bytes. */
  readonly count: number;
  readonly bytes: number;
}

export class FreeRefusals {
  readonly #now: () => number;
  readonly #keys = new BoundedMap<string, Usage>(MAX_KEYS);

  /** `now` returns milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Seconds until the key may send sealed requests again. Null means now. */
  retryAfterSeconds(apiKeyId: string): number | null {
    const { since, count, bytes } = this.#usageOf(apiKeyId);
    if (count < MAX_FREE_REFUSALS && bytes < MAX_FREE_BYTES) return null;
    return Math.max(1, Math.ceil((since + WINDOW_MS - this.#now()) / 1000));
  }

  count(apiKeyId: string, bytes: number): void {
    const usage = this.#usageOf(apiKeyId);
    this.#keys.set(apiKeyId, { since: usage.since, count: usage.count + 1, bytes: usage.bytes + bytes });
  }

  #usageOf(apiKeyId: string): Usage {
    const now = this.#now();
    const known = this.#keys.get(apiKeyId);
    return known === undefined || Math.abs(now - known.since) >= WINDOW_MS ? { since: now, count: 0, bytes: 0 } : known;
  }
}
