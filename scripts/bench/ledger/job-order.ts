/** IPC messages from the ledger bench to its coordinator processes. */
import type { ProviderId } from '@inference/protocol';
import type { DatabaseTarget } from '../../../apps/coordinator/dist/database/connection/open-database.js';

export interface JobProcessOptions {
  readonly target: DatabaseTarget;
  readonly accounts: readonly string[];
  readonly providers: readonly ProviderId[];
}

/** Command: runs jobs on a newly opened ledger. */
export interface JobOrder {
  readonly jobs: number;
  readonly atOnce: number;
  readonly hasLeases: boolean;
}

/** Command: exits the process. */
export const END = 'end';
