/** Maximums per account under concurrent requests. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ApiKeyCache } from '../../src/database/accounts/api-key-cache.js';
import { createAccount, findKey, hashKey, NO_LIMITS } from '../../src/database/accounts/api-key-repository.js';
import { MAX_KEYS, OwnedKeyRepository } from '../../src/database/accounts/owned-key-repository.js';
import { MAX_PLAYGROUND_KEYS, PlaygroundKeyRepository } from '../../src/database/accounts/playground-key-repository.js';
import { endOldestSessions, MAX_SESSIONS } from '../../src/database/accounts/session-repository.js';
import type { Database } from '../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';

describeDatabases('concurrent requests', (fresh) => {
  let place: TestDatabase;
  /** Databases of two coordinators on PostgreSQL, and of one on SQLite. */
  let databases: Database[];
  let accountId: string;
  let now = 1_790_000_000_000;
  const rings: ApiKeyCache[] = [];

  beforeEach(async () => {
    place = await fresh();
    databases = place.dialect === 'postgres' ? [await place.open(), await place.open()] : [await place.open()];
    accountId = await createAccount(first(), 'customer', now);
  });
  afterEach(async () => {
    for (const ring of rings.splice(0)) await ring.close();
    for (const database of databases) await database.destroy();
    await place.remove();
  });

  const first = (): Database => databases[0] as Database;
  const clock = (): number => now++;
  const ringOf = (database: Database): ApiKeyCache => {
    const ring = new ApiKeyCache({ database, now: clock, onWriteError: () => {} });
    rings.push(ring);
    return ring;
  };
  const inUse = async (madeFor: 'playground' | null): Promise<number> => {
    const keys = await first().selectFrom('api_keys').select('made_for').where('revoked_at', 'is', null).execute();
    return keys.filter((key) => key.made_for === madeFor).length;
  };

  it('keys stay within their maximum', async () => {
    const desks = databases.map((database) => new OwnedKeyRepository({ database, apiKeyCache: ringOf(database), now: clock }));
    // Sequential up to shortly before the maximum; only the rest run concurrently.
    for (let index = 0; index < MAX_KEYS - 20; index++) await desks[0]?.create(accountId, `key ${index}`, NO_LIMITS);
    const made = await Promise.all(
      Array.from({ length: 80 }, (_, index) => desks[index % desks.length]?.create(accountId, 'one more', NO_LIMITS)),
    );
    expect(made.filter((key) => key !== null)).toHaveLength(20);
    expect(await inUse(null)).toBe(MAX_KEYS);
    const other = await createAccount(first(), 'another', now);
    expect(await desks[0]?.create(other, 'first', NO_LIMITS)).not.toBeNull();
  });

  it('playground keys stay within their maximum, and revoked keys are rejected', async () => {
    const makers = databases.map((database) => new PlaygroundKeyRepository({ database, apiKeyCache: ringOf(database), now: clock }));
    const made = await Promise.all(Array.from({ length: 40 }, (_, index) => makers[index % makers.length]?.create(accountId)));
    expect(await inUse('playground')).toBe(MAX_PLAYGROUND_KEYS);
    const states = await Promise.all(made.map(async (key) => (await findKey(first(), hashKey(key?.text ?? '')))?.revokedAt ?? null));
    expect(states.filter((revokedAt) => revokedAt === null)).toHaveLength(MAX_PLAYGROUND_KEYS);
  });

  it('sessions beyond the maximum end, oldest first', async () => {
    const time = (index: number): Date => new Date(now + index);
    const asStored = (date: Date): Date => (place.dialect === 'postgres' ? date : (date.toISOString() as unknown as Date));
    const users = first() as unknown as import('kysely').Kysely<Record<string, Record<string, unknown>>>;
    const stamps = { created_at: asStored(time(0)), updated_at: asStored(time(0)) };
    const flag = place.dialect === 'postgres' ? false : 0;
    await users
      .insertInto('auth_users')
      .values({ id: accountId, name: 'Ada', email: 'ada@example.com', email_verified: flag, ...stamps })
      .execute();
    for (let index = 0; index < MAX_SESSIONS + 5; index++) {
      const session = { id: `session-${String(index).padStart(3, '0')}`, token: `hash ${index}`, user_id: accountId };
      const times = { expires_at: asStored(time(1e9)), created_at: asStored(time(index)), updated_at: asStored(time(index)) };
      await users
        .insertInto('auth_sessions')
        .values({ ...session, ...times })
        .execute();
    }
    await Promise.all(databases.map((database) => endOldestSessions(database, accountId)));
    const left = await first().selectFrom('auth_sessions').select('id').orderBy('id').execute();
    expect(left).toHaveLength(MAX_SESSIONS);
    expect(left[0]?.id).toBe('session-005');
  });
});
