/** `HealthFigures`: what one coordinator observed during an interval, in a form that can be merged. Pure. */
import Type, { type Static } from 'typebox';

const amount = Type.Number();
const counts = Type.Record(Type.String({ maxLength: 64 }), Type.Number({ minimum: 0 }));

export const HealthFiguresSchema = Type.Object({
  /** Readings of the gauges below. */
  samples: Type.Integer({ minimum: 0 }),
  /** Ended jobs by outcome: `delivered`, `client_gone`, `refused`, or an error code. */
  jobs: counts,
  /** Failed attempts by reason. */
  failedAttempts: counts,
  /** Job durations: observations per bucket, by upper bound in seconds. Not cumulative. */
  jobSeconds: counts,
  /** Times to the first content of a stream, in the same form. */
  firstTokenSeconds: counts,
  /** Sums of gauges over all readings. `routable`: providers that can take jobs. */
  sums: Type.Object({ waiting: amount, running: amount, routable: amount, slots: amount, usedSlots: amount }),
  /** Sums of connected providers over all readings, by trust level. */
  providers: counts,
  maxWaiting: amount,
  /** Longest delay of a timer, in milliseconds. */
  maxLoopLagMs: amount,
  /** Latest quick check of the ledger, perhaps from before the interval; amounts in micro-USD. Null: none since the start. */
  ledger: Type.Union([
    Type.Null(),
    Type.Object({ at: amount, owed: amount, held: amount, fees: amount, requestedWithdrawals: amount, problems: amount }),
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

/** Merges two parts of one coordinator's interval. health-points.ts combines coordinators, whose averages add up. */
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
 * Quantile of observations by upper bound, interpolated within its bucket as by PromQL's `histogram_quantile`.
 *
 * @param quantile From 0 to 1.
 * @returns In the unit of the bounds; null without observations. Beyond the last bound: the last bound.
 */
export function quantileOf(observations: Counts, quantile: number): number | null {
  const buckets = Object.entries(observations)
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
  return lower;
}
