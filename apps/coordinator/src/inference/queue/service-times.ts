/** Mean time that jobs occupy a slot, measured per model. Expected waits are computed from this mean. */
import { BoundedMap } from '@inference/scheduler/bounded-map';

/** Weight of the newest job in the moving average. */
const NEWEST_JOB_WEIGHT = 0.1;
const MAX_MODELS = 10_000;
/** Minimum jobs before an estimate is given. */
const MIN_JOBS = 3;

export class ServiceTimes {
  readonly #models = new BoundedMap<string, { readonly meanMs: number; readonly jobs: number }>(MAX_MODELS);

  /** Records that a job occupied its slot for `ms` milliseconds. */
  add(model: string, ms: number): void {
    const known = this.#models.get(model);
    const jobs = (known?.jobs ?? 0) + 1;
    const meanMs = known === undefined ? ms : known.meanMs + Math.max(NEWEST_JOB_WEIGHT, 1 / jobs) * (ms - known.meanMs);
    this.#models.set(model, { meanMs, jobs });
  }

  /** Wait of a job behind `ahead` queued jobs, on `slots` busy slots, in milliseconds; null: unknown. */
  waitMs(model: string, ahead: number, slots: number): number | null {
    const known = this.#models.get(model);
    if (known === undefined || known.jobs < MIN_JOBS || slots < 1) return null;
    return (known.meanMs * (ahead + 1)) / slots;
  }
}
