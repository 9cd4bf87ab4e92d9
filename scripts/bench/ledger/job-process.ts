/**
 * Coordinator process of the ledger bench: opens its own connections to the shared PostgreSQL and runs jobs when told so.
 *
 * Argument: {@link JobProcessOptions} as JSON. Messages: `ready`, then per order a {@link JobsResult}.
 */
import type { ProviderId } from '@inference/protocol';
import { openLedger } from '../../../apps/coordinator/dist/billing/ledger/sql-ledger.js';
import { openDatabase } from '../../../apps/coordinator/dist/database/connection/open-database.js';
import { runJobs } from './jobs.js';

export interface JobProcessOptions {
  readonly url: string;
  readonly accounts: readonly string[];
  readonly providers: readonly ProviderId[];
  readonly hasLeases: boolean;
}

/** Number of jobs to run; null ends the process. */
export interface JobOrder {
  readonly jobs: number | null;
}

const AT_ONCE = 128;

async function main(): Promise<void> {
  const { url, accounts, providers, hasLeases } = JSON.parse(process.argv[2] ?? '') as JobProcessOptions;
  const database = await openDatabase({ url });
  const ledger = await openLedger({
    database,
    providerSharePercent: 90,
    ownMachinesFree: false,
    separateReservations: true,
    ...(hasLeases ? { leases: { minPerSecond: 20 } } : {}),
    onError: (error) => console.error(error),
  });
  const say = (message: unknown): void => void process.send?.(message);
  process.on('message', ({ jobs }: JobOrder) => {
    const work =
      jobs === null
        ? ledger
            .close()
            .then(() => database.destroy())
            .then(() => process.disconnect())
        : runJobs(ledger, { jobs, atOnce: AT_ONCE, accounts, providers }).then(say);
    work.catch(fail);
  });
  say('ready');
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}

main().catch(fail);
