/** Tuning constants of placement. The defaults were chosen with the simulator (docs/scheduler-simulation.md). */
export interface SchedulerConstants {
  /** Costs up to the best cost times this factor, plus `nearTieMs` milliseconds, are treated as equal. */
  readonly nearTieFactor: number;
  readonly nearTieMs: number;
  /** Share of requests that go to an unmeasured provider, if any exists. */
  readonly measuringShare: number;
  /** An unproven provider wins only if its cost times this factor is at most the best proven cost. */
  readonly unprovenFactor: number;
  /** Maximum share of a model's latest jobs on unproven providers, while a proven provider can serve. */
  readonly unprovenShare: number;
  /** Share of requests that go to an overdue provider, if any exists and no cached prefix decides. */
  readonly overdueShare: number;
  /** Idle time after which a provider is overdue, in milliseconds. */
  readonly overdueMs: number;
  /** Maximum cost of an overdue provider: the best cost times this factor, plus `overdueMaxMs` milliseconds. */
  readonly overdueMaxFactor: number;
  readonly overdueMaxMs: number;
  /** Slowdown per concurrent job, as a share of the time without concurrent jobs. */
  readonly batchSlowdown: number;
  /** Added time to the first token per running job, in milliseconds. */
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
