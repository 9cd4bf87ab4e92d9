/**
 * Process that does ledger work until it is killed. Reports each confirmed settlement with its cost, and each deposit, over IPC.
 *
 * Arguments: the database as JSON, a seed, and the number of job ids shared with other processes (0: own jobs only).
 */
import { createHash } from 'node:crypto';
import type { JobId } from '@inference/protocol';
import { seededRandom } from '../../../../../test/support/seeded-random.js';
import type { Ledger } from '../../../src/billing/ledger/ledger.js';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { type DatabaseTarget, openDatabase } from '../../../src/database/connection/open-database.js';
import type { SealedNonce } from '../../../src/database/sealed-nonce-repository.js';
import { upTo } from './random.js';
import { newJob, openTestLedger, PROVIDER, reservation, settlement, T0 } from './random-steps.js';

const AT_ONCE = 24;
const [targetText = '', seedText = '', sharedText = ''] = process.argv.slice(2);
const target = JSON.parse(targetText) as DatabaseTarget;
const random = seededRandom(Number(seedText));
const shared = Number(sharedText);

export type WorkerSaid =
  | { ready: true }
  | { settled: string; cost: number; at: number }
  | { deposited: string; amount: number }
  | { done: true };
const say = (said: WorkerSaid): void => void process.send?.(said);

/** Id of a job that all processes share. */
function sharedJob(index: number): JobId {
  const hex = createHash('sha256').update(`shared ${index}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}` as JobId;
}

/** Each job takes one nonce, derived from its id. */
function nonceOf(jobId: JobId): SealedNonce {
  return { digest: jobId, jobId, lifetimeMs: 3_600_000 };
}

async function workOn(ledger: Ledger, job: JobId): Promise<void> {
  const at = T0 - upTo(random, 3) * 3_600_000;
  const accountId = `customer-${upTo(random, 2)}`;
  if (random() < 0.05) {
    const deposit = { eventId: newJob(), accountId, amount: microUsd(1 + upTo(random, 500)), source: 'admin', at } as const;
    await ledger.deposit(deposit);
    say({ deposited: deposit.eventId, amount: deposit.amount });
  }
  // Shared jobs belong to one account, whichever process reserves them.
  const reserved = await ledger
    .reserve(reservation({ jobId: job, accountId: shared > 0 ? 'customer-0' : accountId, nonce: nonceOf(job), at }))
    .catch(() => null);
  if (reserved !== null && reserved.kind !== 'reserved') return;
  if (random() < 0.2) {
    await ledger.release(job, at);
    return;
  }
  if (random() < 0.05) return;
  const outcome = await ledger.settle(settlement(job, { completionTokens: upTo(random, 60), providerId: PROVIDER, at }));
  if (outcome.kind === 'settled') say({ settled: job, cost: outcome.cost, at });
}

async function main(): Promise<void> {
  const database = await openDatabase(target);
  const ledger = await openTestLedger(database, { separateReservations: true, onError: () => undefined });
  say({ ready: true });
  let next = 0;
  const worker = async (): Promise<void> => {
    while (shared === 0 || next < shared) await workOn(ledger, shared === 0 ? newJob() : sharedJob(next++));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await ledger.close();
  await database.destroy();
  say({ done: true });
  process.disconnect();
}

await main();
