/** When a write's promise resolves, the commit is on the disk, except if its sync was deferred. */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { GroupCommit } from '../../src/billing/ledger/group-commit.js';
import { LedgerError } from '../../src/billing/ledger/ledger-error.js';
import { deferSync, syncToDisk } from '../../src/database/connection/deferred-sync.js';
import { openDatabase } from '../../src/database/connection/open-database.js';
import { FileAdapter } from '../../src/database/connection/sqlite.js';
import { WalFile } from '../../src/database/connection/wal-file.js';
import type { Database } from '../../src/database/tables.js';

let directory: string;
beforeEach(async () => {
  directory = temporaryDirectory('durability');
});

describe('the database file', () => {
  let database: Database;
  let flushes: () => number;
  beforeEach(async () => {
    database = await openDatabase({ file: join(directory, 'test.db') });
    const { adapter } = database.getExecutor();
    if (!(adapter instanceof FileAdapter)) throw new Error('this is no file');
    const flush = vi.spyOn(adapter.wal, 'flush');
    flushes = () => flush.mock.calls.length;
  });
  afterEach(() => database.destroy());

  const insert = (into: Database, name: string) => into.insertInto('secrets').values({ name, value: 'v' }).execute();

  it('waits for the disk after writes, and not after reads', async () => {
    await database.selectFrom('secrets').selectAll().execute();
    expect(flushes()).toBe(0);
    await insert(database, 'one');
    expect(flushes()).toBe(1);
    await database.transaction().execute(async (transaction) => {
      await insert(transaction, 'two');
      await insert(transaction, 'three');
      expect(flushes()).toBe(1);
    });
    expect(flushes()).toBe(2);
  });

  it('makes only a deferred commit visible before the sync', async () => {
    await database.transaction().execute(async (transaction) => {
      deferSync(transaction);
      await insert(transaction, 'quick');
    });
    expect(flushes()).toBe(0);
    expect(await database.selectFrom('secrets').select('name').execute()).toEqual([{ name: 'quick' }]);
    await syncToDisk(database);
    expect(flushes()).toBe(1);
    await expect(
      database.transaction().execute(async (transaction) => {
        deferSync(transaction);
        throw new Error('rolled back');
      }),
    ).rejects.toThrow('rolled back');
    await database.transaction().execute((transaction) => insert(transaction, 'next'));
    expect(flushes()).toBe(2);
  });
});

describe('the log of the database file', () => {
  it('is synced once for all callers during a running sync', async () => {
    const path = join(directory, 'log');
    await writeFile(path, 'x');
    const log = new WalFile(path);
    const first = log.flush();
    await Promise.resolve();
    const [second, third] = [log.flush(), log.flush()];
    expect(second).toBe(third);
    expect(second).not.toBe(first);
    await Promise.all([first, second]);
    await log.close();
  });

  it('reports a failed sync, and can be synced the next time', async () => {
    const path = join(directory, 'late');
    const log = new WalFile(path);
    await expect(log.flush()).rejects.toMatchObject({ code: 'ENOENT' });
    await writeFile(path, 'x');
    await log.flush();
    expect(existsSync(path)).toBe(true);
    await log.close();
  });
});

describe('the group commit', () => {
  /** Group commit whose flushes end only when the test lets them. */
  function group() {
    const flushes: { resolve: () => void; reject: (error: unknown) => void }[] = [];
    const batches: string[][] = [];
    const commit = new GroupCommit<string, string>({
      run: async (steps) => {
        batches.push([...steps]);
        return steps.map((step) => ({ ok: `did ${step}` }));
      },
      flush: () => new Promise<void>((resolve, reject) => flushes.push({ resolve, reject })),
      isUrgent: () => false,
      mayBeLost: (step) => step.startsWith('hold'),
      isBlocking: false,
    });
    return { commit, flushes, batches };
  }

  it('resolves steps once durable, except steps that may be lost', async () => {
    const { commit, flushes } = group();
    const outcomes: string[] = [];
    const settled = commit.submit('settle').then((outcome) => outcomes.push(outcome));
    await commit.submit('hold').then((outcome) => outcomes.push(outcome));
    await expect.poll(() => flushes.length).toBe(1);
    expect(outcomes).toEqual(['did hold']);
    flushes[0]?.resolve();
    await settled;
    expect(outcomes).toEqual(['did hold', 'did settle']);
  });

  it('does not wait for the sync of earlier batches', async () => {
    const { commit, flushes, batches } = group();
    const first = commit.submit('settle one');
    await expect.poll(() => flushes.length).toBe(1);
    const second = commit.submit('settle two');
    await expect.poll(() => flushes.length).toBe(2);
    expect(batches).toEqual([['settle one'], ['settle two']]);
    for (const flush of flushes) flush.resolve();
    expect(await Promise.all([first, second])).toEqual(['did settle one', 'did settle two']);
  });

  it('runs steps at any time, also while the previous run is ending', async () => {
    const { commit } = group();
    for (let turns = 0; turns < 16; turns++) {
      await commit.submit('hold one');
      for (let turn = 0; turn < turns; turn++) await null;
      let ran = false;
      const later = commit.submit('hold two').then(() => {
        ran = true;
      });
      // No clock: a submitted step runs within the next turns of the event loop, or never.
      for (let round = 0; round < 8 && !ran; round++) await new Promise((resolve) => setImmediate(resolve));
      expect(ran, `submitted ${turns} turns after the step before it`).toBe(true);
      await later;
    }
  });

  it('fails steps with the disk, and closing waits for the sync', async () => {
    const { commit, flushes } = group();
    const step = commit.submit('settle').catch((error: unknown) => error);
    await expect.poll(() => flushes.length).toBe(1);
    let closed = false;
    const closing = commit.close().then(() => {
      closed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    flushes[0]?.reject(new Error('no space'));
    const error = await step;
    expect(error).toBeInstanceOf(LedgerError);
    expect((error as LedgerError).fault).toBe('unavailable');
    await closing;
  });
});
