/**
 * Leases bench: runs the same jobs with and without credit leases, and prints both results.
 *
 * With a credit lease, a coordinator reserves from a part of a busy account's balance in memory, without a transaction per request.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openLedger } from '../../../apps/coordinator/dist/billing/ledger/sql-ledger.js';
import { microUsd } from '../../../apps/coordinator/dist/billing/micro-usd.js';
import { type DatabaseTarget, openDatabase } from '../../../apps/coordinator/dist/database/connection/open-database.js';
import { checkLedger } from '../../../apps/coordinator/dist/database/ledger/check-ledger.js';
import type { Database } from '../../../apps/coordinator/dist/database/tables.js';
import { dropPooledDatabases, freshPostgres, whyUnreachable } from '../../../apps/coordinator/test/support/fresh-database.js';
import { sized } from '../size.js';
import { median } from '../statistics.js';
import { JobProcesses, type ProcessesResult } from './job-processes.js';
import { depositInto } from './jobs.js';

const MEASURED_ROUNDS = sized(7, 1);
/** Jobs per round, of all processes together. */
const JOBS = sized(6000, 300);
const DEPOSIT_PER_ACCOUNT = microUsd(1_000_000_000_000);

interface Setting {
  readonly processCount: number;
  readonly accountCount: number;
  /** Jobs that each process runs at the same time. */
  readonly concurrency: number;
}

/** Has no targets. Resolves to false if PostgreSQL is unreachable, or if a ledger's sums are wrong after the jobs. */
export async function benchLeases(): Promise<boolean> {
  const isPostgresCorrect = await benchOnPostgres();
  return (await benchOnSqlite()) && isPostgresCorrect;
}

async function benchOnPostgres(): Promise<boolean> {
  const unreachable = await whyUnreachable();
  if (unreachable !== null) {
    console.log(`PostgreSQL is NOT MEASURED, as no server answers: ${unreachable}`);
    return false;
  }
  const settings: readonly Setting[] = [
    ...[1, 2, 3].map((processCount) => ({ processCount, accountCount: 1, concurrency: 128 })),
    { processCount: 3, accountCount: 1, concurrency: 8 },
    { processCount: 3, accountCount: 100, concurrency: 128 },
  ];
  let isCorrect = true;
  try {
    for (const setting of settings) {
      const fresh = await freshPostgres();
      const { target } = fresh;
      if (!('url' in target)) throw new Error('the fresh database is not on a server');
      try {
        isCorrect = (await compare('PostgreSQL', { url: target.url }, setting)) && isCorrect;
      } finally {
        await fresh.remove();
      }
    }
    return isCorrect;
  } finally {
    await dropPooledDatabases();
  }
}

/** Only for comparison: coordinators use no leases on SQLite. */
async function benchOnSqlite(): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'lease-bench-'));
  let isCorrect = true;
  try {
    for (const accountCount of [1, 100]) {
      const file = join(directory, `${accountCount}.db`);
      isCorrect = (await compare('SQLite', { file }, { processCount: 1, accountCount, concurrency: 128 })) && isCorrect;
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  return isCorrect;
}

/** Prints the figures of one setting. Resolves to whether the ledger's sums are correct afterwards. */
async function compare(databaseName: string, target: DatabaseTarget, setting: Setting): Promise<boolean> {
  const accounts = Array.from({ length: setting.accountCount }, (_, index) => `account-${index}`);
  const database = await openDatabase(target);
  const ledger = await openLedger({ database, providerSharePercent: 90, ownMachinesFree: false, onError: (error) => console.error(error) });
  await depositInto(ledger, accounts, DEPOSIT_PER_ACCOUNT);
  await ledger.close();
  const processes = await JobProcesses.start(setting.processCount, target, accounts);
  try {
    const rounds = await runRounds(processes, 'url' in target ? database : null, setting);
    await processes.end();
    const { processCount, accountCount, concurrency } = setting;
    console.log(
      `${databaseName}, ${processCount} processes, ${accountCount} accounts, ${concurrency} jobs at once each: ${MEASURED_ROUNDS} rounds of ${JOBS}`,
    );
    console.log(`  leases off: ${mediansOf(rounds.withoutLeases)}`);
    console.log(`  leases on:  ${mediansOf(rounds.withLeases)}`);
    const { problems, figures } = await checkLedger(database);
    const isCorrect = problems.length === 0 && figures.owed + figures.fees === DEPOSIT_PER_ACCOUNT * accounts.length;
    console.log(`  the sums of ${figures.jobs} jobs ${isCorrect ? 'hold' : `DO NOT HOLD: ${problems.join('; ')}`}`);
    return isCorrect;
  } finally {
    processes.kill();
    await database.destroy();
  }
}

interface Rounds {
  readonly withLeases: readonly ProcessesResult[];
  readonly withoutLeases: readonly ProcessesResult[];
}

/** Alternates rounds with and without leases. `postgres`: the database of the jobs, or null on SQLite. */
async function runRounds(processes: JobProcesses, postgres: Database | null, { processCount, concurrency }: Setting): Promise<Rounds> {
  const jobCount = Math.ceil(JOBS / processCount);
  const withLeases: ProcessesResult[] = [];
  const withoutLeases: ProcessesResult[] = [];
  for (let index = 0; index <= MEASURED_ROUNDS; index++) {
    // The order alternates, because growing tables slow later runs.
    for (const useLeases of index % 2 === 0 ? [false, true] : [true, false]) {
      const result = await processes.run({ jobCount, concurrency, useLeases }, postgres);
      (useLeases ? withLeases : withoutLeases).push(result);
    }
  }
  // The first round of each kind was a warm-up.
  return { withLeases: withLeases.slice(1), withoutLeases: withoutLeases.slice(1) };
}

function mediansOf(rounds: readonly ProcessesResult[]): string {
  const serverCpuUs = rounds.flatMap(({ serverCpuUsPerJob }) => (serverCpuUsPerJob === null ? [] : [serverCpuUsPerJob]));
  const figures = [
    `${Math.round(median(rounds.map(({ jobsPerSecond }) => jobsPerSecond))).toLocaleString('en')} jobs/s`,
    `${Math.round(median(rounds.map(({ cpuUsPerJob }) => cpuUsPerJob)))} µs of CPU per job`,
    ...(serverCpuUs.length === 0 ? [] : [`${Math.round(median(serverCpuUs))} µs in the server's connections`]),
    `${median(rounds.map(({ medianReserveMs }) => medianReserveMs)).toFixed(2)} ms for a reservation`,
  ];
  return figures.join(', ');
}
