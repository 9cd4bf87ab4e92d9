/** Coordinator deadlines under faults: short enough to wait for, long enough for a busy machine. */

import type { JobTimings } from '../../../apps/coordinator/src/inference/job-timings.js';
import type { SessionTimings } from '../../../apps/coordinator/src/providers/session/session-options.js';
import { program } from '../program.js';

export interface CoordinatorTimings {
  readonly fleetTimings?: Partial<SessionTimings>;
  readonly jobTimings?: Partial<JobTimings>;
  /** Maximum time for a client to send its request, in milliseconds. */
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

/** Node arguments and environment of a coordinator with these deadlines. */
export async function withTimings(timings: CoordinatorTimings): Promise<{ readonly argv: string[]; readonly env: Record<string, string> }> {
  return { argv: [await program('test/support/faults/coordinator.ts')], env: { TIMINGS: JSON.stringify(timings) } };
}
