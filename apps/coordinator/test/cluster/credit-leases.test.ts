/** Credit leases of two coordinators: recalled over NATS, and returned when an account is suspended. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Reservation } from '../../src/billing/ledger/ledger.js';
import { microUsd } from '../../src/billing/micro-usd.js';
import { checkLedger } from '../../src/database/ledger/check-ledger.js';
import { newJob, PLAIN_PRICE, reservation } from '../billing/ledger/random-steps.js';
import { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
import { Browser } from '../support/console-client.js';
import { until } from '../support/harness.js';

let cluster: TwoCoordinators;

beforeAll(async () => {
  cluster = await startTwoCoordinators({ refreshMs: 3_600_000 });
});
afterAll(() => cluster.close());

const leasesOf = (account: string) =>
  cluster.near.app.database.selectFrom('credit_leases').selectAll().where('account', '=', account).execute();

/** Reserves and releases at the far coordinator until the account has a lease there. */
async function lease(accountId: string): Promise<void> {
  await until(async () => {
    const jobs = Array.from({ length: 40 }, () => reservation({ accountId, jobId: newJob(), at: Date.now() }));
    await Promise.all(jobs.map((job) => cluster.far.app.ledger.reserve(job)));
    await Promise.all(jobs.map(({ jobId }) => cluster.far.app.ledger.release(jobId, Date.now())));
    return (await leasesOf(accountId)).length > 0;
  });
}

it('money leased at one coordinator pays for a request at the other', async () => {
  const { accountId } = await cluster.near.customer(1_000_000);
  await lease(accountId);
  expect((await cluster.near.app.ledger.balance(accountId)).balance).toBe(1_000_000);
  const all: Reservation = reservation({
    accountId,
    price: { ...PLAIN_PRICE, completionPerMillion: microUsd(0) },
    maxPromptTokens: 1_000_000,
    maxCompletionTokens: 0,
    at: Date.now(),
  });
  expect(await cluster.near.app.ledger.reserve(all)).toEqual({ kind: 'reserved', amount: 1_000_000 });
  expect(await leasesOf(accountId)).toEqual([]);
  await cluster.near.app.ledger.release(all.jobId, Date.now());
});

it('a suspended account is refused at once, and its lease ends within seconds', async () => {
  const owner = new Browser(cluster.near.url);
  await owner.signUp('grace@example.com');
  const { id } = (await (await owner.get('/console/v1/me')).json()) as { id: string };
  const { secret } = await owner.newKey();
  await cluster.near.app.ledger.deposit({
    eventId: 'deposit',
    accountId: id,
    amount: microUsd(1_000_000),
    source: 'development',
    at: Date.now(),
  });
  await lease(id);
  const statusOf = async (key: string) => (await cluster.far.get('/v1/models', key)).status;
  expect(await statusOf(secret)).toBe(200);
  const suspended = await fetch(`${cluster.near.url}/admin/v1/accounts/${id}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${cluster.far.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ suspended: true }),
  });
  expect(suspended.status).toBe(200);
  await until(async () => (await statusOf(secret)) !== 200);
  await until(async () => (await leasesOf(id)).length === 0);
  expect(await cluster.near.app.ledger.balance(id)).toMatchObject({ balance: 1_000_000, reserved: 0 });
  await until(async () => (await checkLedger(cluster.near.app.database)).problems.length === 0);
});
