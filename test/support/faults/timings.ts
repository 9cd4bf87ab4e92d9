/** Deadlines of a coordinator in fault tests. Short, because tests wait for them, but long enough for a busy machine. */

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
  fleetTimings: { pingMs: 500, silenceMs: 8000, backoffMs: 100, cancelConfirmMs: 8000 },
  jobTimings: { acceptMs: 8000, firstContentMs: 8000, betweenFramesMs: 8000, completionMs: 8000, closingMs: 4000, clientDrainMs: 15_000 },
  requestMs: 10_000,
};

/** Node arguments and environment of a coordinator with these deadlines. */
export async function withTimings(timings: CoordinatorTimings): Promise<{ readonly argv: string[]; readonly env: Record<string, string> }> {
  return { argv: [await program('test/support/faults/coordinator.ts')], env: { TIMINGS: JSON.stringify(timings) } };
}
