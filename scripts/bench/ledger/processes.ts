/** Ledger bench with three coordinator processes on one PostgreSQL: jobs per second, and processor time of processes and server. */
import { openLedger } from '../../../apps/coordinator/dist/billing/ledger/sql-ledger.js';
import { microUsd } from '../../../apps/coordinator/dist/billing/micro-usd.js';
import { checkLedger } from '../../../apps/coordinator/dist/database/ledger/check-ledger.js';
import type { Database } from '../../../apps/coordinator/dist/database/tables.js';
import { sized } from '../size.js';
import { median } from '../statistics.js';
import { JobProcesses, serverTimeBetween, serverTimes } from './job-processes.js';
import { fund, type JobsResult } from './jobs.js';

const PROCESSES = 3;
const ROUNDS = sized(5, 1);
const JOBS = sized(4000, 100);
const AT_ONCE = 128;

export interface ProcessBench {
  readonly accountCount: number;
  /** Minimum jobs per second of all processes together. */
  readonly perSecond: number;
}

/** Prints the results. Resolves to whether the target was met and the ledger balances. */
export async function benchProcesses(database: Database, url: string, { accountCount, perSecond }: ProcessBench): Promise<boolean> {
  const accounts = Array.from({ length: accountCount }, (_, index) => `account-${index}`);
  const given = microUsd(1_000_000_000_000);
  const ledger = await openLedger({ database, providerSharePercent: 90, ownMachinesFree: false, onError: (error) => console.error(error) });
  await fund(ledger, accounts, given);
  await ledger.close();

  const processes = await JobProcesses.start(PROCESSES, { url }, accounts);
  try {
    await processes.run({ jobs: JOBS / 4, atOnce: AT_ONCE, hasLeases: false });
    const results: (JobsResult & { readonly serverPerJob: number | null })[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const before = await serverTimes(database);
      const parts = await processes.run({ jobs: JOBS, atOnce: AT_ONCE, hasLeases: false });
      const time = serverTimeBetween(before, await serverTimes(database));
      results.push({ ...together(parts), serverPerJob: time === null ? null : time / (PROCESSES * JOBS) });
    }
    await processes.end();
    return await report(database, `${PROCESSES} processes, ${accountCount} accounts`, perSecond, results, given * accountCount);
  } finally {
    processes.kill();
  }
}

/** Combines the results of concurrent processes. */
export function together(parts: readonly JobsResult[]): JobsResult {
  return {
    perSecond: parts.reduce((sum, part) => sum + part.perSecond, 0),
    cpuPerJob: parts.reduce((sum, part) => sum + part.cpuPerJob, 0) / parts.length,
    reserveMs: parts.reduce((sum, part) => sum + part.reserveMs, 0) / parts.length,
    cost: parts.reduce((sum, part) => sum + part.cost, 0),
  };
}

async function report(
  database: Database,
  title: string,
  target: number,
  results: readonly (JobsResult & { readonly serverPerJob: number | null })[],
  given: number,
): Promise<boolean> {
  const { problems, figures } = await checkLedger(database);
  const sums = problems.length === 0 && figures.owed + figures.fees === given && figures.jobs === PROCESSES * JOBS * (ROUNDS + 0.25);
  const rate = median(results.map((result) => result.perSecond));
  const cpu = median(results.map((result) => result.cpuPerJob));
  const server = results.flatMap(({ serverPerJob }) => (serverPerJob === null ? [] : [serverPerJob]));
  console.log(`PostgreSQL, ${title}: ${AT_ONCE} jobs at once each, ${ROUNDS} rounds of ${JOBS} each`);
  console.log(`  ${Math.round(rate).toLocaleString('en')} jobs/s together (target ${target}): ${rate >= target ? 'met' : 'MISSED'}`);
  const ofServer = server.length === 0 ? 'not measured' : `${Math.round(median(server))} µs`;
  console.log(`  ${Math.round(cpu)} µs of CPU per job in the coordinators, ${ofServer} in the server's connections`);
  console.log(`  the sums ${sums ? 'hold' : `DO NOT HOLD: ${problems.join('; ')}`}`);
  return rate >= target && sums;
}
