/** `ServiceTimes` averages for how long completed jobs of a model occupied a slot. The request queue estimates waits from it. */
import { BoundedMap } from '@inference/scheduler/bounded-map';

/** Weight of the newest job in the moving average, after the first ten. */
const NEWEST_JOB_WEIGHT = 0.1;
const MAX_MODELS = 10_000;
/** Minimum number of jobs before an estimate is made. */
const MIN_JOBS = 3;

export class ServiceTimes {
  /** Key: model. */
  readonly #models = new BoundedMap<string, { readonly meanMs: number; readonly jobs: number }>(MAX_MODELS);

  add(model: string, ms: number): void {
    const known = this.#models.get(model);
    const jobs = (known?.jobs ?? 0) + 1;
    const meanMs = known === undefined ? ms : known.meanMs + Math.max(NEWEST_JOB_WEIGHT, 1 / jobs) * (ms - known.meanMs);
    this.#models.set(model, { meanMs, jobs });
  }

  /** Expected wait behind `ahead` queued jobs while all `slots` are busy, in milliseconds. Null with too few measurements, or no slot. */
  waitMs(model: string, ahead: number, slots: number): number | null {
    const known = this.#models.get(model);
    if (known === undefined || known.jobs < MIN_JOBS || slots < 1) return null;
    return (known.meanMs * (ahead + 1)) / slots;
  }
}
