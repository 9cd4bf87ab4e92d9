import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { StartupError } from '../../src/config/startup-error.js';
import { ApiKeyCache } from '../../src/database/accounts/api-key-cache.js';
import { addKey, createAccount, NO_LIMITS, newKeyText, revokeKey } from '../../src/database/accounts/api-key-repository.js';
import { ensureDevelopmentKeys, ensureSharedDevelopmentKeys } from '../../src/database/accounts/initial-keys.js';
import { openDatabase } from '../../src/database/connection/open-database.js';
import { exactInteger } from '../../src/database/connection/postgres.js';
import { ReceiptRepository } from '../../src/database/providers/receipt-repository.js';
import type { Database } from '../../src/database/tables.js';
import { describeDatabases, TEST_DATABASE_URL, type TestDatabase } from '../support/databases.js';

const onWriteError = (error: unknown): void => {
  throw error;
};

describe('the database file', () => {
  it('is rejected if malformed', async () => {
    const directory = temporaryDirectory('coordinator-store');
    writeFileSync(join(directory, 'text.db'), 'this is not a database, and long enough to show it'.repeat(50));
    await expect(openDatabase({ file: join(directory, 'text.db') })).rejects.toThrow(/cannot be opened/);
  });
});

describe('the database server', () => {
  it('is named with its fault if unreachable', async () => {
    await expect(openDatabase({ url: 'postgres://nobody@127.0.0.1:1/none' })).rejects.toThrow(
      /could not be brought up to date: ECONNREFUSED/,
    );
  });

  it('rejects numbers that would lose digits', () => {
    expect(exactInteger('9007199254740991')).toBe(Number.MAX_SAFE_INTEGER);
    expect(() => exactInteger('9007199254740993')).toThrow(RangeError);
    expect(() => exactInteger('1.5')).toThrow(RangeError);
  });
});

describeDatabases('the database', (fresh, dialect) => {
  let place: TestDatabase;
  let database: Database;
  let directory: string;

  beforeEach(async () => {
    directory = temporaryDirectory('coordinator-store');
    place = await fresh();
    database = await place.open();
  });
  afterEach(async () => {
    await database.destroy();
    await place.remove();
  });

  describe('the database', () => {
    if (dialect === 'postgres') {
      it('reports an unknown database on the server', async () => {
        const url = new URL(TEST_DATABASE_URL);
        url.pathname = '/there_is_none_of_this_name';
        await expect(openDatabase({ url: url.href })).rejects.toThrow(/3D000 \(the server has no database of this name/);
      });
    }

    it('opens again with its rows, and migrates only once', async () => {
      const id = await createAccount(database, 'someone', 1);
      await database.destroy();
      database = await place.open();
      expect(await database.selectFrom('accounts').selectAll().execute()).toMatchObject([
        { id, name: 'someone', created_at: 1, deleted_at: null },
      ]);
    });

    // Two connections to one file in one process deadlock: SQLite's wait blocks the thread.
    if (dialect === 'postgres') {
      it('is migrated once when several programs open the database at the same time', async () => {
        const other = await fresh('empty');
        const opened = await Promise.all([other.open(), other.open(), other.open()]);
        for (const one of opened) {
          const totals = await one.selectFrom('network_totals').select('window').orderBy('window').execute();
          expect(totals.map((row) => row.window)).toEqual(['24h', '30d', '7d', 'all']);
          await one.destroy();
        }
        await other.remove();
      });
    }

    it('is rejected if written by a newer program', async () => {
      await sql`insert into kysely_migration (name, timestamp) values ('9999_from_the_future', 'x')`.execute(database);
      await expect(place.open()).rejects.toThrow(StartupError);
    });

    it('returns sums of 64-bit integers as numbers', async () => {
      const accountId = await createAccount(database, 'a', Number.MAX_SAFE_INTEGER);
      const { sum } = await database
        .selectFrom('accounts')
        .select((select) => select.fn.sum<number>('created_at').as('sum'))
        .where('id', '=', accountId)
        .executeTakeFirstOrThrow();
      expect(sum).toBe(Number.MAX_SAFE_INTEGER);
    });

    it('enforces that keys belong to accounts', async () => {
      await expect(addKey(database, { accountId: 'nobody', kind: 'api', text: newKeyText(), now: 1 })).rejects.toThrow(/foreign key/i);
    });

    it('rolls back a whole transaction when part of it fails', async () => {
      const failing = database.transaction().execute(async (transaction) => {
        await createAccount(transaction, 'half', 1);
        throw new Error('on purpose');
      });
      await expect(failing).rejects.toThrow('on purpose');
      expect(await database.selectFrom('accounts').selectAll().execute()).toEqual([]);
    });
  });

  describe('the API key cache', () => {
    it('caches a key for a short time, and looks the key up again afterwards', async () => {
      let now = 1000;
      const ring = new ApiKeyCache({ database, now: () => now, cacheMs: 100, onWriteError });
      const accountId = await createAccount(database, 'a', now);
      const text = newKeyText();
      const id = await addKey(database, { accountId, kind: 'api', text, now });
      expect(await ring.authenticate(text)).toEqual({ id, accountId, kind: 'api', suspended: false, ...NO_LIMITS });
      expect(ring.authenticate(text)).not.toBeInstanceOf(Promise);
      await revokeKey(database, id, now);
      expect(ring.authenticate(text)).toMatchObject({ id });
      now += 101;
      expect(await ring.authenticate(text)).toBeNull();
      await ring.close();
    });

    it('writes when keys were last used, and stores no key', async () => {
      const ring = new ApiKeyCache({ database, now: () => 4242, onWriteError });
      const accountId = await createAccount(database, 'a', 1);
      const text = newKeyText();
      await addKey(database, { accountId, kind: 'api', text, now: 1 });
      await ring.authenticate(text);
      await ring.close();
      const rows = await database.selectFrom('api_keys').selectAll().execute();
      expect(rows[0]).toMatchObject({ last_used_at: 4242, prefix: text.slice(0, 12) });
      expect(JSON.stringify(rows)).not.toContain(text);
    });

    it('waits for a write in progress when closed', async () => {
      let release = (): void => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      let isWriting = false;
      const slow = database.withPlugin({
        transformQuery: ({ node }) => {
          isWriting ||= node.kind === 'UpdateQueryNode';
          return node;
        },
        transformResult: async ({ result }) => {
          if (isWriting) await held;
          return result;
        },
      });
      const accountId = await createAccount(database, 'a', 1);
      const text = newKeyText();
      await addKey(database, { accountId, kind: 'api', text, now: 1 });
      const ring = new ApiKeyCache({ database: slow, now: () => 4242, writeEveryMs: 1, onWriteError });
      await ring.authenticate(text);
      await expect.poll(() => isWriting).toBe(true);
      let isClosed = false;
      const closing = ring.close().then(() => {
        isClosed = true;
      });
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
      expect(isClosed).toBe(false);
      release();
      await closing;
      expect(await database.selectFrom('api_keys').select('last_used_at').execute()).toEqual([{ last_used_at: 4242 }]);
    });

    it('never caches a key that was revoked during its look-up', async () => {
      const ring = new ApiKeyCache({ database, onWriteError });
      const accountId = await createAccount(database, 'a', 1);
      const text = newKeyText();
      const id = await addKey(database, { accountId, kind: 'api', text, now: 1 });
      const found = ring.authenticate(text);
      await ring.revoke(id);
      await found;
      expect(await ring.authenticate(text)).toBeNull();
      await ring.close();
    });
  });

  describe('development keys', () => {
    it('are added to a new database, and replaced when revoked', async () => {
      const file = join(directory, 'keys.json');
      const keys = await ensureDevelopmentKeys(database, file, 1);
      await database.deleteFrom('api_keys').execute();
      await database.deleteFrom('accounts').execute();
      expect(await ensureDevelopmentKeys(database, file, 2)).toEqual(keys);
      const { id } = await database.selectFrom('api_keys').select('id').where('kind', '=', 'api').executeTakeFirstOrThrow();
      await revokeKey(database, id, 3);
      expect((await ensureDevelopmentKeys(database, file, 4)).api_key).not.toBe(keys.api_key);
      writeFileSync(file, '{"api_key": "service-secret');
      await expect(ensureDevelopmentKeys(database, file, 5)).rejects.toThrow(/damaged; remove the file/);
    });

    it.runIf(dialect === 'postgres')('are the same for coordinators of a cluster that start at once', async () => {
      const file = (name: string): string => join(directory, name, 'keys.json');
      const ensureAll = (now: number) =>
        Promise.all(['one', 'two', 'three'].map((name) => ensureSharedDevelopmentKeys(database, file(name), now)));
      const [keys, ...others] = await ensureAll(1);
      expect(others).toEqual([keys, keys]);
      expect(JSON.parse(readFileSync(file('two'), 'utf8'))).toEqual(keys);
      expect(await database.selectFrom('accounts').select('name').execute()).toEqual([{ name: 'development' }]);
      const { id } = await database.selectFrom('api_keys').select('id').where('kind', '=', 'api').executeTakeFirstOrThrow();
      await revokeKey(database, id, 2);
      const [next, ...rest] = await ensureAll(3);
      expect(rest).toEqual([next, next]);
      expect(next?.api_key).not.toBe(keys?.api_key);
    });
  });

  describe('the receipt repository', () => {
    it('retains the newest receipts, for their account only', async () => {
      const receipts = new ReceiptRepository({ database, maxRows: 2, onWriteError });
      const accountId = await createAccount(database, 'a', 1);
      const receipt = (n: number) => ({
        jobId: `job-${n}`,
        accountId,
        receipt: 'r',
        receiptSignature: 's',
        responseSignature: 't',
        createdAt: n,
      });
      for (const n of [1, 2, 3]) receipts.add(receipt(n));
      expect(await receipts.find('job-1', accountId)).toEqual(receipt(1));
      expect(await receipts.find('job-1', 'other')).toBeNull();
      await receipts.close();
      expect(await receipts.find('job-1', accountId)).toBeNull();
      expect(await receipts.find('job-3', accountId)).toEqual(receipt(3));
      expect(await receipts.find('job-3', 'other')).toBeNull();
    });
  });
});
