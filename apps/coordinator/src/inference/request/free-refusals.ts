/**
 * `FreeRefusals` counts, at this coordinator, an API key's sealed (end-to-end encrypted) requests that providers refused for free.
 *
 * Above a number or size per hour, the key must wait. Running requests are not counted, so concurrent ones may exceed the limit.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';

const WINDOW_MS = 3_600_000;
export const MAX_FREE_REFUSALS = 60;
/** Maximum bytes of refused sealed requests per key and hour. */
const MAX_FREE_BYTES = 64 * 1024 * 1024;
const MAX_API_KEYS = 20_000;

/** Refused requests of one API key in the current hour. */
interface Usage {
  /** Time of the first one, which starts the hour. */
  readonly since: number;
  readonly count: number;
  readonly bytes: number;
}

export class FreeRefusals {
  readonly #now: () => number;
  /** Key: id of the API key. */
  readonly #usages = new BoundedMap<string, Usage>(MAX_API_KEYS);

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
    this.#usages.set(apiKeyId, { since: usage.since, count: usage.count + 1, bytes: usage.bytes + bytes });
  }

  #usageOf(apiKeyId: string): Usage {
    const now = this.#now();
    const known = this.#usages.get(apiKeyId);
    return known === undefined || Math.abs(now - known.since) >= WINDOW_MS ? { since: now, count: 0, bytes: 0 } : known;
  }
}
