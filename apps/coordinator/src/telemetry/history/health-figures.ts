/**
 * `HealthFigures`: measurements of one coordinator over an interval, for the charts of the admin console.
 *
 * Averages are stored as sums with a sample count, so that figures of two intervals can be merged.
 */
import Type, { type Static } from 'typebox';

const number = Type.Number();
/** Counts by key. A key is an outcome, a reason, a trust level, or the upper bound of a histogram bucket. */
const counts = Type.Record(Type.String({ maxLength: 64 }), Type.Number({ minimum: 0 }));

export const HealthFiguresSchema = Type.Object({
  /** Number of gauge readings in the sums below. */
  samples: Type.Integer({ minimum: 0 }),
  /** Ended jobs by outcome: `delivered`, `client_gone`, `refused`, or an error code. */
  jobs: counts,
  /** Failed attempts by reason. */
  failedAttempts: counts,
  /** Histogram of job durations: counts by upper bound in seconds. Not cumulative. Has all buckets, or none if no job ended. */
  jobSeconds: counts,
  /** The same for the time from request to first content of streams. */
  firstTokenSeconds: counts,
  /**
   * Sums of gauges over all samples. `waiting` and `running` count jobs. `routable` counts providers with the status `online`.
   *
   * `slots` counts the jobs that all connected providers can run at once. `usedSlots` counts their slots in use.
   */
  sums: Type.Object({ waiting: number, running: number, routable: number, slots: number, usedSlots: number }),
  /** Sums of connected providers over all samples, by trust level. */
  providers: counts,
  /** Most waiting jobs in one sample. */
  maxWaiting: number,
  /** Longest time that a busy event loop delayed a timer. */
  maxLoopLagMs: number,
  /**
   * Newest check of the ledger, which may have run before the interval. Null: no check since the process started.
   *
   * `at` is in milliseconds since 1970, and `problems` is the number of problems found. The other members are totals in micro-USD,
   * not increases of the interval. `LedgerSummary` explains them.
   */
  ledger: Type.Union([
    Type.Null(),
    Type.Object({ at: number, owed: number, held: number, fees: number, requestedWithdrawals: number, problems: number }),
  ]),
});
export type HealthFigures = Static<typeof HealthFiguresSchema>;

export type Counts = HealthFigures['jobs'];

export const NO_FIGURES: HealthFigures = {
  samples: 0,
  jobs: {},
  failedAttempts: {},
  jobSeconds: {},
  firstTokenSeconds: {},
  sums: { waiting: 0, running: 0, routable: 0, slots: 0, usedSlots: 0 },
  providers: {},
  maxWaiting: 0,
  maxLoopLagMs: 0,
  ledger: null,
};

/** Merges figures of one coordinator from two intervals. To combine coordinators, use `healthPoints`, which adds their averages. */
export function mergeFigures(a: HealthFigures, b: HealthFigures): HealthFigures {
  return {
    samples: a.samples + b.samples,
    jobs: addCounts(a.jobs, b.jobs),
    failedAttempts: addCounts(a.failedAttempts, b.failedAttempts),
    jobSeconds: addCounts(a.jobSeconds, b.jobSeconds),
    firstTokenSeconds: addCounts(a.firstTokenSeconds, b.firstTokenSeconds),
    sums: {
      waiting: a.sums.waiting + b.sums.waiting,
      running: a.sums.running + b.sums.running,
      routable: a.sums.routable + b.sums.routable,
      slots: a.sums.slots + b.sums.slots,
      usedSlots: a.sums.usedSlots + b.sums.usedSlots,
    },
    providers: addCounts(a.providers, b.providers),
    maxWaiting: Math.max(a.maxWaiting, b.maxWaiting),
    maxLoopLagMs: Math.max(a.maxLoopLagMs, b.maxLoopLagMs),
    ledger: laterLedger(a.ledger, b.ledger),
  };
}

export function addCounts(a: Counts, b: Counts): Counts {
  const sum: Record<string, number> = { ...a };
  for (const [key, count] of Object.entries(b)) sum[key] = (sum[key] ?? 0) + count;
  return sum;
}

export function laterLedger(a: HealthFigures['ledger'], b: HealthFigures['ledger']): HealthFigures['ledger'] {
  return a === null || (b !== null && b.at >= a.at) ? b : a;
}

/**
 * Estimates a quantile of a histogram. Interpolates within the bucket, like PromQL's `histogram_quantile`.
 *
 * @param histogram Observations per bucket, by upper bound. Not cumulative.
 * @param quantile From 0 to 1.
 * @returns Value in the unit of the bounds, at most the last finite bound. Null: the histogram is empty.
 */
export function quantileOf(histogram: Counts, quantile: number): number | null {
  const buckets = Object.entries(histogram)
    .map(([bound, count]) => ({ bound: bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound), count }))
    .sort((a, b) => a.bound - b.bound);
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return null;
  const rank = quantile * total;
  let before = 0;
  let lower = 0;
  for (const { bound, count } of buckets) {
    if (count > 0 && before + count >= rank)
      return bound === Number.POSITIVE_INFINITY ? lower : lower + ((bound - lower) * (rank - before)) / count;
    before += count;
    lower = bound;
  }
  // Never reached, because `rank` is at most the total.
  return lower;
}
