/** Part of the ledger bench: jobs per second of three coordinator processes on one PostgreSQL, without credit leases. */
import { openLedger } from '../../../apps/coordinator/dist/billing/ledger/sql-ledger.js';
import { microUsd } from '../../../apps/coordinator/dist/billing/micro-usd.js';
import { checkLedger } from '../../../apps/coordinator/dist/database/ledger/check-ledger.js';
import type { Database } from '../../../apps/coordinator/dist/database/tables.js';
import { sized } from '../size.js';
import { median } from '../statistics.js';
import { JobProcesses, type ProcessesResult } from './job-processes.js';
import { depositInto } from './jobs.js';

const PROCESSES = 3;
const ROUNDS = sized(5, 1);
/** Jobs per process and round. */
const JOBS = sized(4000, 100);
const CONCURRENCY = 128;
const DEPOSIT_PER_ACCOUNT = microUsd(1_000_000_000_000);

interface Setting {
  readonly accountCount: number;
  readonly minPerSecond: number;
}

/** Prints the results. Resolves to whether the target was met and the ledger balances. */
export async function benchProcesses(database: Database, url: string, { accountCount, minPerSecond }: Setting): Promise<boolean> {
  const accounts = Array.from({ length: accountCount }, (_, index) => `account-${index}`);
  const ledger = await openLedger({ database, providerSharePercent: 90, ownMachinesFree: false, onError: (error) => console.error(error) });
  await depositInto(ledger, accounts, DEPOSIT_PER_ACCOUNT);
  await ledger.close();

  const processes = await JobProcesses.start(PROCESSES, { url }, accounts);
  try {
    const order = { concurrency: CONCURRENCY, useLeases: false };
    const warmUp = { ...order, jobCount: JOBS / 4 };
    await processes.run(warmUp, null);
    const rounds: ProcessesResult[] = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await processes.run({ ...order, jobCount: JOBS }, database));
    await processes.end();
    const isFast = report(accountCount, minPerSecond, rounds);
    return (
      (await checkSums(database, { deposited: DEPOSIT_PER_ACCOUNT * accountCount, jobCount: PROCESSES * JOBS * (ROUNDS + 0.25) })) && isFast
    );
  } finally {
    processes.kill();
  }
}

function report(accountCount: number, minPerSecond: number, rounds: readonly ProcessesResult[]): boolean {
  const rate = median(rounds.map((round) => round.jobsPerSecond));
  const cpu = median(rounds.map((round) => round.cpuUsPerJob));
  const server = rounds.flatMap(({ serverCpuUsPerJob }) => (serverCpuUsPerJob === null ? [] : [serverCpuUsPerJob]));
  const isFast = rate >= minPerSecond;
  console.log(
    `PostgreSQL, ${PROCESSES} processes, ${accountCount} accounts: ${CONCURRENCY} jobs at once each, ${ROUNDS} rounds of ${JOBS} each`,
  );
  console.log(`  ${Math.round(rate).toLocaleString('en')} jobs/s together (target ${minPerSecond}): ${isFast ? 'met' : 'MISSED'}`);
  const serverText = server.length === 0 ? 'not measured' : `${Math.round(median(server))} µs`;
  console.log(`  ${Math.round(cpu)} µs of CPU per job in the coordinators, ${serverText} in the server's connections`);
  return isFast;
}

async function checkSums(database: Database, expected: { readonly deposited: number; readonly jobCount: number }): Promise<boolean> {
  const { problems, figures } = await checkLedger(database);
  const sumsHold = problems.length === 0 && figures.owed + figures.fees === expected.deposited && figures.jobs === expected.jobCount;
  console.log(`  the sums ${sumsHold ? 'hold' : `DO NOT HOLD: ${problems.join('; ')}`}`);
  return sumsHold;
}
