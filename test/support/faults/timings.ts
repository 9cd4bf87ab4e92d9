/** Deadlines of a coordinator that runs under faults: short enough to be waited for, long enough for a machine that is busy. */

import type { JobTimings } from '../../../apps/coordinator/src/inference/timings.js';
import type { SessionTimings } from '../../../apps/coordinator/src/providers/session/session-timings.js';
import { program } from '../program.js';

export interface CoordinatorTimings {
  readonly fleetTimings?: Partial<SessionTimings>;
  readonly jobTimings?: Partial<JobTimings>;
  /** Longest time in which a client may send its request, in milliseconds. */
  readonly requestMs?: number;
}

export const SHORT: CoordinatorTimings = {
  fleetTimings: { pingMs: 500, silenceMs: 5000, backoffMs: 100, cancelConfirmMs: 5000 },
  jobTimings: {
    acceptMs: 4000,
    firstContentMs: 4000,
    betweenFramesMs: 4000,
    completionMs: 4000,
    closingMs: 2000,
    clientDrainMs: 2000,
  },
  requestMs: 3000,
};

/** Arguments for Node, and the environment, of a coordinator with these deadlines. */
export async function withTimings(timings: CoordinatorTimings): Promise<{ readonly argv: string[]; readonly env: Record<string, string> }> {
  return { argv: [await program('test/support/faults/coordinator.ts')], env: { TIMINGS: JSON.stringify(timings) } };
}
