/** Types of what the ledger benches send to the processes that they start (`job-process.ts`): the argument, then commands over IPC. */
import type { ProviderId } from '@inference/protocol';
import type { DatabaseTarget } from '../../../apps/coordinator/dist/database/connection/open-database.js';

export interface JobProcessOptions {
  readonly target: DatabaseTarget;
  readonly accounts: readonly string[];
  readonly providers: readonly ProviderId[];
}

/** Command: runs jobs on a newly opened ledger. */
export interface JobOrder {
  readonly jobCount: number;
  readonly concurrency: number;
  /** Whether the ledger may reserve from credit leases. */
  readonly useLeases: boolean;
}

/** Command: exits the process. */
export const END = 'end';
