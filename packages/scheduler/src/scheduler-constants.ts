/** Constants of placement, chosen with the simulator (docs/scheduler-simulation.md), which can try other values. */
export interface SchedulerConstants {
  /** Costs within this factor plus `nearTieMs` milliseconds of the best count as equal. */
  readonly nearTieFactor: number;
  readonly nearTieMs: number;
  /** Share of requests that prefer an unmeasured provider, if any exists. */
  readonly measuringShare: number;
  /** An unproven provider wins by cost only if its cost times this is at most the best proven cost. */
  readonly unprovenFactor: number;
  /** Maximum share of a model's latest jobs for measuring unproven or overdue providers, while a proven provider can serve. */
  readonly unprovenShare: number;
  /** Share of requests without a cached prefix that prefer an overdue provider, if any exists. */
  readonly overdueShare: number;
  /** Idle time after which a provider is overdue, in milliseconds. */
  readonly overdueMs: number;
  /** Maximum cost of a preferred overdue provider: the best cost times this, plus `overdueMaxMs` milliseconds. */
  readonly overdueMaxFactor: number;
  readonly overdueMaxMs: number;
  /** Added time per running job, as a share of the time alone. */
  readonly batchSlowdown: number;
  /** Wait per running job before a new job's first turn, in milliseconds. */
  readonly turnMs: number;
  /** Slowdown of a provider that is hot, on battery or short of memory. */
  readonly strainedFactor: number;
  /** Penalty for zero, one, two, and three or more recent failures, in milliseconds. */
  readonly failurePenaltiesMs: readonly [number, number, number, number];
  /** Penalty for a load, which may evict another model, as a multiple of the load time. */
  readonly loadPenaltyFactor: number;
  /** Concurrent loads of a model: at most `maxLoads`, or this share of the loaded providers if larger. */
  readonly maxLoads: number;
  readonly maxLoadsShare: number;
  /** Weight of expected cached tokens; 0: ignored, 1: counted in full. */
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
