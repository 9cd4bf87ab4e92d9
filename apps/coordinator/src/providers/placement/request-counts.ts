/** How many requests came for each model in the last minutes, in this process. Bounded in models and time. */
import { BoundedMap } from '../../limits/bounded-map.js';

const MINUTE_MS = 60_000;
/** Minutes that are summed up, the one that runs included. */
export const WINDOW_MINUTES = 5;
const MAX_MODELS = 10_000;

export class RequestCounts {
  readonly #models = new BoundedMap<string, { minute: number; count: number }[]>(MAX_MODELS);

  /** A request for the model came. */
  add(model: string, now: number): void {
    const minute = Math.floor(now / MINUTE_MS);
    const minutes = this.#models.get(model) ?? [];
    const newest = minutes.at(-1);
    if (newest !== undefined && newest.minute >= minute) {
      newest.count++;
      return;
    }
    minutes.push({ minute, count: 1 });
    if (minutes.length > WINDOW_MINUTES) minutes.shift();
    this.#models.set(model, minutes);
  }

  /** Requests of the minute that runs and the ones before it. */
  recent(model: string, now: number): number {
    const first = Math.floor(now / MINUTE_MS) - (WINDOW_MINUTES - 1);
    let count = 0;
    for (const { minute, count: some } of this.#models.get(model) ?? []) if (minute >= first) count += some;
    return count;
  }
}
