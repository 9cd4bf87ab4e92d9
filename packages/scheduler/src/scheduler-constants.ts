/**
 * Tuning constants of placement. The defaults were chosen with the simulator (docs/scheduler-simulation.md).
 *
 * - unmeasured: with too few verified answers to know the provider's rates
 * - unproven: without any verified answer, and without a certificate chain of its hardware
 * - overdue: idle for `overdueMs`, so that the rates may have changed
 */
export interface SchedulerConstants {
  /** Costs up to the best cost times this factor, plus `nearTieMs` milliseconds, are treated as equal. */
  readonly nearTieFactor: number;
  readonly nearTieMs: number;
  /** Share of requests that may go to an unmeasured provider, where no cached prefix decides. */
  readonly measuringShare: number;
  /** By cost, an unproven provider wins only if its cost times this factor is at most the best cost of the others. */
  readonly unprovenFactor: number;
  /** Share of a model's latest jobs above which unproven providers are not tried for a measurement, if others can serve. */
  readonly unprovenShare: number;
  /** Share of requests that may go to an overdue provider, where no cached prefix decides. */
  readonly overdueShare: number;
  /** Idle time after which a provider is overdue, in milliseconds. */
  readonly overdueMs: number;
  /** Maximum cost of an overdue provider to be tried: the best cost times this factor, plus `overdueMaxMs` milliseconds. */
  readonly overdueMaxFactor: number;
  readonly overdueMaxMs: number;
  /** Slowdown per concurrent job, as a share of the time without concurrent jobs. */
  readonly batchSlowdown: number;
  /** Added time to the first token per job that the provider is running, in milliseconds. */
  readonly turnMs: number;
  /** Slowdown factor of a provider that is hot, on battery or short of memory. */
  readonly strainedFactor: number;
  /** Penalty for zero, one, two, and three or more recent failures, in milliseconds. */
  readonly failurePenaltiesMs: readonly [number, number, number, number];
  /** Penalty for loading a model, as a multiple of the load time: the load may evict another model. */
  readonly loadPenaltyFactor: number;
  /** Maximum concurrent loads of a model: the larger of `maxLoads` and `maxLoadsShare` times the loaded providers. */
  readonly maxLoads: number;
  readonly maxLoadsShare: number;
  /** Share of the expected cached tokens that reduces the cost: 0 ignores the cache, 1 trusts the expectation in full. */
  readonly affinityWeight: number;
}

export const DEFAULT_CONSTANTS: SchedulerConstants = {
  nearTieFactor: 1.15,
  nearTieMs: 50,
  measuringShare: 0.05,
  unprovenFactor: 1.5,
  unprovenShare: 0.1,
  overdueShare: 0.5,
  overdueMs: 30 * 60_000,
  overdueMaxFactor: 16,
  overdueMaxMs: 20_000,
  batchSlowdown: 0.25,
  turnMs: 100,
  strainedFactor: 1.5,
  failurePenaltiesMs: [0, 5000, 20_000, 60_000],
  loadPenaltyFactor: 0,
  maxLoads: 4,
  maxLoadsShare: 0.25,
  affinityWeight: 1,
};
