/** Leases bench: compares the ledger with and without credit leases, in alternating rounds. */
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
import { JobProcesses, serverTimeBetween, serverTimes } from './job-processes.js';
import { fund, type JobsResult } from './jobs.js';
import { together } from './processes.js';

const ROUNDS = sized(7, 1);
/** Jobs of all processes together. */
const JOBS = sized(6000, 300);
const GIVEN = microUsd(1_000_000_000_000);

interface Setting {
  readonly processCount: number;
  readonly accountCount: number;
  /** Concurrency per process. */
  readonly atOnce: number;
}

interface Round extends JobsResult {
  /** Processor time of PostgreSQL's connections per job, in microseconds; null for SQLite. */
  readonly serverPerJob: number | null;
}

/** Prints the results. Resolves to whether the ledger balances. */
export async function benchLeases(): Promise<boolean> {
  let holds = await benchPostgres();
  const directory = mkdtempSync(join(tmpdir(), 'lease-bench-'));
  try {
    for (const accountCount of [1, 100]) {
      const file = join(directory, `${accountCount}.db`);
      holds = (await compare('SQLite', { file }, { processCount: 1, accountCount, atOnce: 128 })) && holds;
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  return holds;
}

async function benchPostgres(): Promise<boolean> {
  const unreachable = await whyUnreachable();
  if (unreachable !== null) {
    console.log(`PostgreSQL is NOT MEASURED, as no server answers: ${unreachable}`);
    return false;
  }
  const settings: readonly Setting[] = [
    ...[1, 2, 3].map((processCount) => ({ processCount, accountCount: 1, atOnce: 128 })),
    { processCount: 3, accountCount: 1, atOnce: 8 },
    { processCount: 3, accountCount: 100, atOnce: 128 },
  ];
  let holds = true;
  try {
    for (const setting of settings) {
      const place = await freshPostgres();
      const { target } = place;
      if (!('url' in target)) throw new Error('the fresh database is not on a server');
      try {
        holds = (await compare('PostgreSQL', { url: target.url }, setting)) && holds;
      } finally {
        await place.remove();
      }
    }
    return holds;
  } finally {
    await dropPooledDatabases();
  }
}

async function compare(name: string, target: DatabaseTarget, setting: Setting): Promise<boolean> {
  const accounts = Array.from({ length: setting.accountCount }, (_, index) => `account-${index}`);
  const database = await openDatabase(target);
  const ledger = await openLedger({ database, providerSharePercent: 90, ownMachinesFree: false, onError: (error) => console.error(error) });
  await fund(ledger, accounts, GIVEN);
  await ledger.close();
  const processes = await JobProcesses.start(setting.processCount, target, accounts);
  try {
    const results = await alternate(processes, 'url' in target ? database : null, setting);
    await processes.end();
    const { processCount, accountCount, atOnce } = setting;
    console.log(`${name}, ${processCount} processes, ${accountCount} accounts, ${atOnce} jobs at once each: ${ROUNDS} rounds of ${JOBS}`);
    console.log(`  leases off: ${textOf(results.off)}`);
    console.log(`  leases on:  ${textOf(results.on)}`);
    const { problems, figures } = await checkLedger(database);
    const holds = problems.length === 0 && figures.owed + figures.fees === GIVEN * accounts.length;
    console.log(`  the sums of ${figures.jobs} jobs ${holds ? 'hold' : `DO NOT HOLD: ${problems.join('; ')}`}`);
    return holds;
  } finally {
    processes.kill();
    await database.destroy();
  }
}

async function alternate(
  processes: JobProcesses,
  server: Database | null,
  { processCount, atOnce }: Setting,
): Promise<{ readonly on: readonly Round[]; readonly off: readonly Round[] }> {
  const jobs = Math.ceil(JOBS / processCount);
  const round = async (hasLeases: boolean): Promise<Round> => {
    const before = server === null ? null : await serverTimes(server);
    const result = together(await processes.run({ jobs, atOnce, hasLeases }));
    const time = server === null ? null : serverTimeBetween(before, await serverTimes(server));
    return { ...result, serverPerJob: time === null ? null : time / (processCount * jobs) };
  };
  const on: Round[] = [];
  const off: Round[] = [];
  // The first round of each kind is warm-up.
  for (let index = 0; index <= ROUNDS; index++) {
    // The order alternates, because growing tables slow later runs.
    for (const hasLeases of index % 2 === 0 ? [false, true] : [true, false]) (hasLeases ? on : off).push(await round(hasLeases));
  }
  return { on: on.slice(1), off: off.slice(1) };
}

function textOf(rounds: readonly Round[]): string {
  const server = rounds.flatMap(({ serverPerJob }) => (serverPerJob === null ? [] : [serverPerJob]));
  const figures = [
    `${Math.round(median(rounds.map(({ perSecond }) => perSecond))).toLocaleString('en')} jobs/s`,
    `${Math.round(median(rounds.map(({ cpuPerJob }) => cpuPerJob)))} µs of CPU per job`,
    ...(server.length === 0 ? [] : [`${Math.round(median(server))} µs in the server's connections`]),
    `${median(rounds.map(({ reserveMs }) => reserveMs)).toFixed(2)} ms for a reservation`,
  ];
  return figures.join(', ');
}
