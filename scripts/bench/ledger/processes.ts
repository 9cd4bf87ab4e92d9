/**
 * Ledger bench with three coordinator processes on one PostgreSQL: jobs per second of all together, and processor time of the
 * coordinators and of the server's connections.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ProviderId } from '@inference/protocol';
import { sql } from 'kysely';
import { openLedger } from '../../../apps/coordinator/dist/billing/ledger/sql-ledger.js';
import { microUsd } from '../../../apps/coordinator/dist/billing/micro-usd.js';
import { checkLedger } from '../../../apps/coordinator/dist/database/ledger/check-ledger.js';
import type { Database } from '../../../apps/coordinator/dist/database/tables.js';
import { sized } from '../size.js';
import { median } from '../statistics.js';
import type { JobOrder, JobProcessOptions } from './job-process.js';
import { fund, type JobsResult } from './jobs.js';

const PROCESSES = 3;
const ROUNDS = sized(5, 1);
const JOBS = sized(4000, 100);
const PROGRAM = fileURLToPath(new URL('job-process.ts', import.meta.url));
/** Ticks of `/proc/<pid>/stat` are hundredths of a second. */
const TICK_US = 10_000;

export interface ProcessBench {
  readonly accountCount: number;
  /** Target of all processes together. */
  readonly perSecond: number;
  readonly hasLeases: boolean;
}

/** Prints the figures. Resolves to whether the target was met and the sums hold. */
export async function benchProcesses(
  database: Database,
  url: string,
  { accountCount, perSecond, hasLeases }: ProcessBench,
): Promise<boolean> {
  const accounts = Array.from({ length: accountCount }, (_, index) => `account-${index}`);
  const providers = Array.from({ length: 20 }, (_, index) => index.toString(16).padStart(32, '0') as ProviderId);
  const given = microUsd(1_000_000_000_000);
  const ledger = await openLedger({ database, providerSharePercent: 90, ownMachinesFree: false, onError: (error) => console.error(error) });
  await fund(ledger, accounts, given);
  await ledger.close();

  const children = await Promise.all(Array.from({ length: PROCESSES }, () => start({ url, accounts, providers, hasLeases })));
  try {
    await runRound(children, JOBS / 4);
    const results: (JobsResult & { readonly serverPerJob: number | null })[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const before = await serverMicroseconds(database);
      const begun = performance.now();
      const parts = await runRound(children, JOBS);
      const seconds = (performance.now() - begun) / 1000;
      const after = await serverMicroseconds(database);
      const jobs = PROCESSES * JOBS;
      results.push({
        perSecond: jobs / seconds,
        cpuPerJob: parts.reduce((sum, part) => sum + part.cpuPerJob, 0) / PROCESSES,
        serverPerJob: before === null || after === null ? null : (after - before) / jobs,
        cost: parts.reduce((sum, part) => sum + part.cost, 0),
      });
    }
    await Promise.all(children.map(end));
    const title = `${PROCESSES} processes, ${accountCount} accounts${hasLeases ? ', credit leases' : ''}`;
    return await report(database, title, perSecond, results, given * accountCount);
  } finally {
    for (const child of children) child.kill('SIGKILL');
  }
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
  console.log(`PostgreSQL, ${title}: 128 jobs at once each, ${ROUNDS} rounds of ${JOBS} each`);
  console.log(`  ${Math.round(rate).toLocaleString('en')} jobs/s together (target ${target}): ${rate >= target ? 'met' : 'MISSED'}`);
  const ofServer = server.length === 0 ? 'not measured' : `${Math.round(median(server))} µs`;
  console.log(`  ${Math.round(cpu)} µs of CPU per job in the coordinators, ${ofServer} in the server's connections`);
  console.log(`  the sums ${sums ? 'hold' : `DO NOT HOLD: ${problems.join('; ')}`}`);
  return rate >= target && sums;
}

async function start(options: JobProcessOptions): Promise<ChildProcess> {
  const child = fork(PROGRAM, [JSON.stringify(options)]);
  await answer(child);
  return child;
}

function runRound(children: readonly ChildProcess[], jobs: number): Promise<JobsResult[]> {
  return Promise.all(
    children.map((child) => {
      const result = answer(child);
      child.send({ jobs } satisfies JobOrder);
      return result as Promise<JobsResult>;
    }),
  );
}

async function end(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close');
  child.send({ jobs: null } satisfies JobOrder);
  await closed;
}

async function answer(child: ChildProcess): Promise<unknown> {
  const failed = once(child, 'close').then(() => {
    throw new Error('a process of the ledger bench ended early');
  });
  const [message] = (await Promise.race([once(child, 'message'), failed])) as [unknown];
  failed.catch(() => undefined);
  return message;
}

/** Processor time of all open connections to this database, or null if the server is not on this machine. */
async function serverMicroseconds(database: Database): Promise<number | null> {
  const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity where datname = current_database()`.execute(database);
  let ticks = 0;
  for (const { pid } of rows) {
    const file = `/proc/${pid}/stat`;
    if (!existsSync(file)) return null;
    // After the command in parentheses: fields 14 and 15 are user and system time.
    const fields = readFileSync(file, 'utf8').split(') ')[1]?.split(' ') ?? [];
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks * TICK_US;
}
