/**
 * Ledger bench: how many jobs per second the ledger reserves and settles, and the processor time per job.
 *
 * Runs on SQLite and PostgreSQL in this process, then on PostgreSQL in three processes. On a busy machine, trust only processor time.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProviderId } from '@inference/protocol';
import { openLedger } from '../../../apps/coordinator/dist/billing/ledger/sql-ledger.js';
import { microUsd } from '../../../apps/coordinator/dist/billing/micro-usd.js';
import { openDatabase } from '../../../apps/coordinator/dist/database/connection/open-database.js';
import { checkLedger } from '../../../apps/coordinator/dist/database/ledger/check-ledger.js';
import type { Database } from '../../../apps/coordinator/dist/database/tables.js';
import { dropPooledDatabases, freshPostgres, whyUnreachable } from '../../../apps/coordinator/test/support/fresh-database.js';
import { sized } from '../size.js';
import { median } from '../statistics.js';
import { depositInto, type JobsResult, runJobs } from './jobs.js';
import { benchProcesses } from './processes.js';

const ROUNDS = sized(5, 1);
/** Jobs per round. */
const JOBS = sized(4000, 200);

interface Targets {
  readonly minPerSecond: number;
  /** Maximum CPU time of this process per job, in microseconds; null: no target. */
  readonly maxCpuUs: number | null;
}

/** Prints the results. Resolves to false if a target was missed, PostgreSQL is unreachable, or a ledger's sums are wrong. */
export async function benchLedger(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'ledger-bench-'));
  try {
    console.log(`one write to this disk, alone: ${syncMs(directory).toFixed(2)} ms`);
    let met = true;
    for (const accounts of [1, 100]) {
      const file = join(directory, `jobs-${accounts}.db`);
      met =
        (await withDatabase(
          () => openDatabase({ file }),
          (database) => benchJobs(`SQLite, ${accounts} accounts`, database, accounts, { minPerSecond: 2000, maxCpuUs: 250 }),
        )) && met;
    }
    return (await benchPostgres()) && met;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function benchPostgres(): Promise<boolean> {
  const unreachable = await whyUnreachable();
  if (unreachable !== null) {
    console.log(`PostgreSQL is NOT MEASURED, as no server answers: ${unreachable}`);
    return false;
  }
  const benches: readonly ((database: Database, url: string) => Promise<boolean>)[] = [
    (database) => benchJobs('PostgreSQL, 1 account', database, 1, { minPerSecond: 1000, maxCpuUs: null }),
    (database, url) => benchProcesses(database, url, { accountCount: 100, minPerSecond: 3000 }),
    (database, url) => benchProcesses(database, url, { accountCount: 1, minPerSecond: 1500 }),
  ];
  let met = true;
  try {
    for (const bench of benches) {
      // `empty`, because commits to a `migrated` test database do not wait for the disk.
      const fresh = await freshPostgres('empty');
      const { target } = fresh;
      if (!('url' in target)) throw new Error('the fresh database is not on a server');
      try {
        met = (await withDatabase(fresh.open, (database) => bench(database, target.url))) && met;
      } finally {
        await fresh.remove();
      }
    }
    return met;
  } finally {
    await dropPooledDatabases();
  }
}

async function withDatabase(open: () => Promise<Database>, bench: (database: Database) => Promise<boolean>): Promise<boolean> {
  const database = await open();
  try {
    return await bench(database);
  } finally {
    await database.destroy();
  }
}

async function benchJobs(title: string, database: Database, accountCount: number, targets: Targets): Promise<boolean> {
  const accounts = Array.from({ length: accountCount }, (_, index) => `account-${index}`);
  const providers = Array.from({ length: 20 }, (_, index) => index.toString(16).padStart(32, '0') as ProviderId);
  const ledger = await openLedger({ database, providerSharePercent: 90, ownMachinesFree: false, onError: (error) => console.error(error) });
  const deposit = microUsd(1_000_000_000_000);
  await depositInto(ledger, accounts, deposit);
  const round = (jobCount: number): Promise<JobsResult> => runJobs(ledger, { jobCount, concurrency: 128, accounts, providers });
  // The first, shorter round is a warm-up.
  const results = [await round(JOBS / 4)];
  for (let index = 0; index < ROUNDS; index++) results.push(await round(JOBS));
  await ledger.close();

  const { problems, figures } = await checkLedger(database);
  const cost = results.reduce((sum, result) => sum + result.cost, 0);
  const sumsHold =
    problems.length === 0 && figures.owed + figures.fees === deposit * accountCount && figures.jobs === JOBS * (ROUNDS + 0.25);
  const measured = results.slice(1);
  const rate = median(measured.map((result) => result.jobsPerSecond));
  const cpu = median(measured.map((result) => result.cpuUsPerJob));
  console.log(`${title}: reserve and settle, 128 jobs at once, ${ROUNDS} rounds of ${JOBS}`);
  console.log(
    `  ${Math.round(rate).toLocaleString('en')} jobs/s (target ${targets.minPerSecond}): ${verdict(rate >= targets.minPerSecond)}`,
  );
  const cpuMet = targets.maxCpuUs === null || cpu <= targets.maxCpuUs;
  console.log(
    `  ${Math.round(cpu)} µs of CPU per job${targets.maxCpuUs === null ? '' : ` (target ${targets.maxCpuUs}): ${verdict(cpuMet)}`}`,
  );
  console.log(`  ${cost.toLocaleString('en')} micro-USD charged; the sums ${sumsHold ? 'hold' : `DO NOT HOLD: ${problems.join('; ')}`}`);
  return rate >= targets.minPerSecond && cpuMet && sumsHold;
}

/** Median duration of writing and syncing 8 KiB to the disk. */
function syncMs(directory: string): number {
  const file = openSync(join(directory, 'sync'), 'w');
  const times: number[] = [];
  for (let index = 0; index < 50; index++) {
    writeSync(file, Buffer.alloc(8192));
    const startMs = performance.now();
    fdatasyncSync(file);
    times.push(performance.now() - startMs);
  }
  closeSync(file);
  return median(times);
}

function verdict(met: boolean): string {
  return met ? 'met' : 'MISSED';
}
