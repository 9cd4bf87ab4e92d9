/** Each nonce of a sealed request is taken once, by concurrent requests of all coordinators. */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { SealedNonceRepository } from '../../src/database/sealed-nonce-repository.js';
import type { Database } from '../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';

const HOUR_MS = 3_600_000;
const digestOf = (number: number): string => createHash('sha256').update(String(number)).digest('hex');

describeDatabases('nonces of sealed requests', (fresh) => {
  let place: TestDatabase;
  /** Of two coordinators where several may share a database. */
  let databases: Database[];

  beforeEach(async () => {
    place = await fresh();
    databases = place.dialect === 'postgres' ? [await place.open(), await place.open()] : [await place.open()];
  });
  afterEach(async () => {
    for (const database of databases) await database.destroy();
    await place.remove();
  });

  it('are each taken once', async () => {
    const repositories = databases.map((database) => new SealedNonceRepository(database));
    const numbers = Array.from({ length: 40 }, (_, index) => index);
    const taken = await Promise.all(
      // Opposite orders, and each nonce twice at each coordinator.
      repositories.flatMap((repository, index) => {
        const order = index === 0 ? numbers : numbers.toReversed();
        return [...order, ...order].map(async (number) => ((await repository.add(digestOf(number), HOUR_MS)) ? number : null));
      }),
    );
    expect(taken.filter((number) => number !== null).sort((a, b) => a - b)).toEqual(numbers);
    expect(await repositories[0]?.add(digestOf(0), HOUR_MS)).toBe(false);
  });

  it('are removed once they have expired', async () => {
    const repository = new SealedNonceRepository(databases[0] as Database);
    await repository.add(digestOf(1), -HOUR_MS);
    await repository.add(digestOf(2), HOUR_MS);
    await repository.prune();
    expect(await Promise.all([1, 2].map((number) => repository.add(digestOf(number), HOUR_MS)))).toEqual([true, false]);
  });

  it('reject with the error of the database, and later ones are taken', async () => {
    const [database] = databases as [Database];
    const repository = new SealedNonceRepository(database);
    await database.schema.alterTable('sealed_nonces').renameTo('hidden').execute();
    await expect(repository.add(digestOf(1), HOUR_MS)).rejects.toThrow();
    await database.schema.alterTable('hidden').renameTo('sealed_nonces').execute();
    expect(await repository.add(digestOf(1), HOUR_MS)).toBe(true);
  });
});
