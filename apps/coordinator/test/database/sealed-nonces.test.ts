/** A nonce of a sealed request is accepted once, even in concurrent transactions of several coordinators. */
import { createHash } from 'node:crypto';
import type { JobId } from '@inference/protocol';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { pruneSealedNonces, type SealedNonce, SealedNonceRepository } from '../../src/database/sealed-nonce-repository.js';
import type { Database } from '../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';

const HOUR_MS = 3_600_000;

describeDatabases('nonces of sealed requests', (fresh) => {
  let place: TestDatabase;
  /** Databases of two coordinators on PostgreSQL, and of one on SQLite. */
  let databases: Database[];

  beforeEach(async () => {
    place = await fresh();
    databases = place.dialect === 'postgres' ? [await place.open(), await place.open()] : [await place.open()];
  });
  afterEach(async () => {
    for (const database of databases) await database.destroy();
    await place.remove();
  });

  const nonce = (number: number, job: string, lifetimeMs = HOUR_MS): SealedNonce => ({
    digest: createHash('sha256').update(String(number)).digest('hex'),
    jobId: job as JobId,
    lifetimeMs,
  });
  /** Whether each nonce belongs to its job, after one transaction takes them all. */
  const take = (nonces: readonly SealedNonce[], database = databases[0] as Database): Promise<boolean[]> =>
    database.transaction().execute(async (transaction) => {
      const taken = await new SealedNonceRepository().take(transaction, nonces);
      return nonces.map(({ digest, jobId }) => taken.get(digest) === jobId);
    });

  it('are each taken by one job', async () => {
    const numbers = Array.from({ length: 40 }, (_, index) => index);
    const taken = await Promise.all(
      // Opposite orders, and each nonce in two transactions of each coordinator.
      databases.flatMap((database, coordinator) =>
        [0, 1].map((transaction) => {
          const order = transaction === 0 ? numbers : numbers.toReversed();
          return take(
            order.map((number) => nonce(number, `${coordinator} ${transaction}`)),
            database,
          ).then((isTaken) => order.filter((_, index) => isTaken[index]));
        }),
      ),
    );
    expect(taken.flat().sort((a, b) => a - b)).toEqual(numbers);
  });

  it('belong to their job however often it takes them, and to no other', async () => {
    expect(await take([nonce(1, 'a'), nonce(2, 'a')])).toEqual([true, true]);
    expect(await take([nonce(1, 'a'), nonce(2, 'b'), nonce(3, 'b')])).toEqual([true, false, true]);
  });

  it('of an earlier version belong to no job', async () => {
    const { digest } = nonce(1, 'a');
    await (databases[0] as Database).insertInto('sealed_nonces').values({ digest, expires_at: 0, job_id: null }).execute();
    expect(await take([nonce(1, 'a')])).toEqual([false]);
  });

  it('can be taken by another job once given back', async () => {
    const [database] = databases as [Database];
    await database.transaction().execute(async (transaction) => {
      const statements = new SealedNonceRepository();
      await statements.take(transaction, [nonce(1, 'a'), nonce(2, 'a')]);
      await statements.giveBack(transaction, [nonce(1, 'a').digest]);
    });
    expect(await take([nonce(1, 'b'), nonce(2, 'b')])).toEqual([true, false]);
  });

  it('are removed once they have expired, however many', async () => {
    const expired = Array.from({ length: 2100 }, (_, index) => nonce(index, 'a', -HOUR_MS));
    await take([...expired, nonce(5000, 'a')]);
    await pruneSealedNonces(databases[0] as Database);
    expect(await take([nonce(0, 'b'), nonce(2099, 'b'), nonce(5000, 'b')])).toEqual([true, true, false]);
  });
});
