/**
 * Constants of placement in one value, so the simulator (docs/scheduler-simulation.md) can try others. The values were chosen
 * with the simulator.
 */
export interface SchedulerConstants {
  /** Costs within this factor plus `nearTieMs` milliseconds of the best count as equal. */
  readonly nearTieFactor: number;
  readonly nearTieMs: number;
  /** Share of the requests that prefer an unmeasured provider, while one exists. */
  readonly measuringShare: number;
  /**
   * Unproven providers come before proven ones only at a cost below the best proven cost divided by this, or to be measured, or as
   * overdue.
   */
  readonly unprovenFactor: number;
  /** Maximum share of a model's latest jobs for the latter two reasons, while a proven provider can serve. */
  readonly unprovenShare: number;
  /**
   * Share of the requests without a cached prefix that prefer an overdue provider, while one exists. Rarely used up: a provider
   * that got a job is not overdue for `overdueMs`.
   */
  readonly overdueShare: number;
  /** Idle time after which a provider is overdue, in milliseconds. */
  readonly overdueMs: number;
  /** An overdue provider is preferred up to this many times the best cost plus `overdueMaxMs` milliseconds. */
  readonly overdueMaxFactor: number;
  readonly overdueMaxMs: number;
  /** Added time per running job, as a share; batching shares most of the work. */
  readonly batchSlowdown: number;
  /** Every running job's turn comes first once, in milliseconds. */
  readonly turnMs: number;
  /** Slowdown of a provider that is hot, on battery or short of memory. */
  readonly strainedFactor: number;
  /** Penalty for zero, one, two, and three or more recent failures, in milliseconds. */
  readonly failurePenaltiesMs: readonly [number, number, number, number];
  /** Penalty for loading a model, as a multiple of the load time, because the load evicts another model. */
  readonly loadPenaltyFactor: number;
  /** Minimum concurrent loads of one model; beyond, this share of the providers that have the model. */
  readonly maxLoads: number;
  readonly maxLoadsShare: number;
  /** Weight of an expected cached prefix; 0: ignored, 1: all saved time counts. */
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
