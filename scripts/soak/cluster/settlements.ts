/** `checkSettlements`: checks that no money stays reserved, each account paid for its answers, and the ledger balances. */
import { setTimeout as delay } from 'node:timers/promises';
import { checkLedger } from '../../../apps/coordinator/src/database/ledger/check-ledger.js';
import type { Load } from './load.js';
import { type InjectedFault, seconds } from './report.js';
import type { SoakCluster } from './soak-cluster.js';

/** Maximum time until reservations end. Those of a killed coordinator are released by others, after `HOLDER_TIMEOUT_MS`. */
const RESERVATION_MS = 30_000;

/** Returns problems. */
export async function checkSettlements(soak: SoakCluster, load: Load, injectedFaults: readonly InjectedFault[]): Promise<string[]> {
  const problems: string[] = [];
  const since = performance.now();
  let reserved = await reservedJobs(soak);
  const before = reserved;
  while (reserved > 0 && performance.now() - since < RESERVATION_MS) {
    await delay(200);
    reserved = await reservedJobs(soak);
  }
  console.log(`reservations: ${before} when the load ended, ${reserved} after ${seconds(performance.now() - since)}`);
  if (reserved > 0) problems.push(`${reserved} reservations are left`);
  // If a coordinator dies before PostgreSQL has committed a settlement, the settlement is lost and the job costs nothing.
  const delayingFaults = injectedFaults.filter(({ fault }) => fault.delaysSettlements);
  const surelyPaid = load.paid.filter(({ startedAt, endedAt }) => !delayingFaults.some(({ from, to }) => startedAt < to && endedAt > from));
  for (const account of soak.accounts) {
    const paid = surelyPaid.filter((answer) => answer.account.accountId === account.accountId).map(({ receipt }) => receipt);
    problems.push(...(await soak.customers.audit(account, paid, Number.POSITIVE_INFINITY)));
  }
  const { figures, problems: wrong } = await checkLedger(soak.database);
  console.log(
    `ledger: ${figures.jobs} jobs, ${figures.postings} postings, ${wrong.length} problems; ${surelyPaid.length} receipts found in usage entries`,
  );
  return [...problems, ...wrong];
}

async function reservedJobs({ database }: SoakCluster): Promise<number> {
  const { count } = await database
    .selectFrom('jobs')
    .where('state', '=', 'reserved')
    .select((query) => query.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}
