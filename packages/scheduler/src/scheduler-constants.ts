/**
 * The constants that placement goes by, in one value, so that the simulator (docs/scheduler-simulation.md) can try others. They
 * were chosen with it.
 */
export interface SchedulerConstants {
  /** Costs within this factor, and `nearTieMs` milliseconds, of the best count as equal. */
  readonly nearTieFactor: number;
  readonly nearTieMs: number;
  /** Share of the requests for which a machine that was not measured yet is preferred, while there is one. */
  readonly measuringShare: number;
  /**
   * Machines that have not proved themselves are chosen before proved ones only where they cost less than one part in this of the best
   * of those, or to be measured, or because they had no work for long.
   */
  readonly unprovenFactor: number;
  /** Share of a model's latest jobs up to which the latter two reasons count, while a proved machine can take the request. */
  readonly unprovenShare: number;
  /**
   * Share of the requests without a warm machine for which one that had no work for long is preferred, while there is one. Many
   * are never taken: whoever had one is not overdue again for `overdueMs`.
   */
  readonly overdueShare: number;
  /** Without work for this long, a machine is overdue. Milliseconds. */
  readonly overdueMs: number;
  /** An overdue machine is preferred where it costs at most this many times the best, and `overdueMaxMs` milliseconds more. */
  readonly overdueMaxFactor: number;
  readonly overdueMaxMs: number;
  /** What each running job adds to the time that a new one takes; batching shares most of the work. */
  readonly batchSlowdown: number;
  /** Every running job's turn comes first once, in milliseconds. */
  readonly turnMs: number;
  /** How much longer everything takes on a machine that is warm or on battery or short of memory. */
  readonly strainedFactor: number;
  /** Price of none, one, two, and three or more failures in a row, in milliseconds. */
  readonly failurePenaltiesMs: readonly [number, number, number, number];
  /** Beside the wait for it, loading a model costs this many times the time it takes, because it pushes another one out. */
  readonly loadPenaltyFactor: number;
  /** Machines that load one model at once while it is in no one's way to wait, at least; beyond, this share of those that have it. */
  readonly maxLoads: number;
  readonly maxLoadsShare: number;
  /** What the part of a prompt that a machine still knows counts for; 0: nothing, 1: all the time that it saves. */
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
