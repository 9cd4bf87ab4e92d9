/**
 * Program of one process of the ledger benches: runs jobs like a coordinator, with its own database connections.
 *
 * The argument is {@link JobProcessOptions} as JSON. Sends `ready` over IPC, then a {@link JobsResult} for each {@link JobOrder}. Exits
 * after {@link END}.
 */
import { openLedger } from '../../../apps/coordinator/dist/billing/ledger/sql-ledger.js';
import { openDatabase } from '../../../apps/coordinator/dist/database/connection/open-database.js';
import type { Database } from '../../../apps/coordinator/dist/database/tables.js';
import { END, type JobOrder, type JobProcessOptions } from './job-order.js';
import { type JobsResult, runJobs } from './jobs.js';

async function main(): Promise<void> {
  const { target, accounts, providers } = JSON.parse(process.argv[2] ?? '') as JobProcessOptions;
  const database = await openDatabase(target);
  process.on('message', (command: JobOrder | typeof END) => {
    const work =
      command === END ? database.destroy().then(() => process.disconnect()) : run(database, command, { accounts, providers }).then(send);
    work.catch(fail);
  });
  send('ready');
}

async function run(
  database: Database,
  { useLeases, ...order }: JobOrder,
  parties: Pick<JobProcessOptions, 'accounts' | 'providers'>,
): Promise<JobsResult> {
  const ledger = await openLedger({
    database,
    providerSharePercent: 90,
    ownMachinesFree: false,
    separateReservations: true,
    ...(useLeases ? { leases: { minPerSecond: 20 } } : {}),
    onError: (error) => console.error(error),
  });
  const result = await runJobs(ledger, { ...order, ...parties });
  await ledger.close();
  return result;
}

function send(message: unknown): void {
  process.send?.(message);
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}

main().catch(fail);
