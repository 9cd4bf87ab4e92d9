/** Revocation of playground keys, with other writes of the same rows and in the same transaction. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ApiKeyCache } from '../../src/database/accounts/api-key-cache.js';
import { createAccount } from '../../src/database/accounts/api-key-repository.js';
import { MAX_PLAYGROUND_KEYS, PLAYGROUND_KEY_MS, PlaygroundKeyRepository } from '../../src/database/accounts/playground-key-repository.js';
import type { Database } from '../../src/database/tables.js';
import { untilBlocked } from '../support/blocked-statement.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';

describeDatabases('playground keys', (fresh, dialect) => {
  let place: TestDatabase;
  let database: Database;
  let cache: ApiKeyCache;
  let keys: PlaygroundKeyRepository;
  let accountId: string;
  let now: number;

  beforeEach(async () => {
    now = 1_790_000_000_000;
    place = await fresh();
    database = await place.open();
    accountId = await createAccount(database, 'customer', now);
    cache = new ApiKeyCache({ database, now: () => now, onWriteError: () => {} });
    keys = new PlaygroundKeyRepository({ database, apiKeyCache: cache, now: () => now });
  });
  afterEach(async () => {
    await cache.close();
    await database.destroy();
    await place.remove();
  });

  /** Creates keys whose ids ascend with the time of creation. */
  async function createKeys(count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, (_, index) => `key-${String(index).padStart(2, '0')}`);
    for (const id of ids) {
      now++;
      const created = await keys.create(accountId);
      await database.updateTable('api_keys').set({ id }).where('id', '=', created.id).execute();
    }
    return ids;
  }

  const use = async (transaction: Database, id: string | undefined): Promise<void> => {
    await transaction
      .updateTable('api_keys')
      .set({ last_used_at: now })
      .where('id', '=', id ?? '')
      .execute();
  };
  const openIds = async (): Promise<string[]> =>
    (await database.selectFrom('api_keys').select('id').where('revoked_at', 'is', null).orderBy('id').execute()).map(({ id }) => id);

  it('stay valid if another write of the transaction fails', async () => {
    const ids = await createKeys(2);
    const failing = async (): Promise<void> => {
      throw new Error('refused');
    };
    await expect(keys.revokeAll(accountId, failing)).rejects.toThrow('refused');
    expect(await openIds()).toEqual(ids);
    await keys.revokeAll(accountId);
    expect(await openIds()).toEqual([]);
  });

  it('are revoked without a deadlock while their last use is stored', async () => {
    const revocations = [
      { revoke: () => keys.revokeAll(accountId), left: 0 },
      // The keys have expired by then, so a new key revokes them.
      { revoke: () => keys.create(accountId), left: 1 },
    ];
    for (const { revoke, left } of revocations) {
      await database.deleteFrom('api_keys').execute();
      const ids = await createKeys(MAX_PLAYGROUND_KEYS);
      now += PLAYGROUND_KEY_MS;
      let revoked: Promise<unknown> | undefined;
      await database.transaction().execute(async (transaction) => {
        await use(transaction, ids[0]);
        revoked = revoke();
        if (dialect === 'postgres') await untilBlocked(database);
        await use(transaction, ids.at(-1));
      });
      await revoked;
      expect(await openIds()).toHaveLength(left);
    }
  });
});
