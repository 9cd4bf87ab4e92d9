/** A damaged, incomplete or unsuitable backup is refused, and existing data stay. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ProviderId } from '@inference/protocol';
import Sqlite from 'better-sqlite3';
import { sql } from 'kysely';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { type BackupOptions, createBackup } from '../../src/backup/create-backup.js';
import { type StagedFolder, stageFolder, UndoError } from '../../src/backup/data-directory.js';
import { restoreBackup } from '../../src/backup/restore-backup.js';
import { openDatabase } from '../../src/database/connection/open-database.js';
import { TransparencyLog } from '../../src/transparency-log/transparency-log.js';
import { backupOptions, restoreOptions } from '../support/backup-options.js';
import { runCommand } from '../support/command-run.js';
import { describePostgres } from '../support/databases.js';
import { migratedFile } from '../support/fresh-database.js';

/** Data directory of a coordinator that has run. */
let source: string;
/** Backup of `source`, which no test changes. */
let good: string;

beforeAll(async () => {
  source = temporaryDirectory('backup-source');
  const folder = join(source, 'coordinator');
  mkdirSync(join(folder, 'images'), { recursive: true });
  writeFileSync(join(folder, 'coordinator.db'), await migratedFile());
  writeFileSync(join(folder, 'auth-secret'), 'a'.repeat(43));
  writeFileSync(join(folder, 'images', `1-${'0'.repeat(64)}`), 'image');
  const database = await openDatabase({ file: join(folder, 'coordinator.db') });
  const log = await TransparencyLog.open({ database, origin: 'a.example/e2e/log', witnesses: [], quorum: 0, onWitnessFailure: () => {} });
  for (let n = 0; n < 5; n++) await log.append({ v: 1, kind: 'revoked', provider_id: `provider-${n}` as ProviderId, since: n });
  await database.destroy();
  good = (await backUp(temporaryDirectory('backups'), { hasImages: true })).path;
});

const env = (dataDir: string) => ({ DATA_DIR: dataDir });
const backUp = (out: string, change: Partial<BackupOptions> = {}) => createBackup(backupOptions(out, env(source), change));

/** Copy of the intact backup, for the test to change. */
async function copyOfGood(): Promise<string> {
  const copy = join(temporaryDirectory('backup-copy'), 'backup');
  await cp(good, copy, { recursive: true });
  return copy;
}

function changeManifest(backup: string, change: (manifest: Record<string, unknown>) => void): void {
  const file = join(backup, 'manifest.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8'));
  change(manifest);
  writeFileSync(file, JSON.stringify(manifest));
}

describe('a backup', () => {
  it('is private, has no secret outside its keys, and is complete by its manifest', () => {
    for (const name of readdirSync(good, { recursive: true, encoding: 'utf8' })) {
      const facts = statSync(join(good, name));
      expect(facts.mode & 0o777, name).toBe(facts.isDirectory() ? 0o700 : 0o600);
    }
    const [{ value = '' } = {}] = JSON.parse(readFileSync(join(good, 'keys', 'secrets.json'), 'utf8')) as { value: string }[];
    expect(value).toMatch(/^[0-9a-f]{64}$/);
    expect(readFileSync(join(good, 'database.sqlite')).includes(value)).toBe(false);
    const { files } = JSON.parse(readFileSync(join(good, 'manifest.json'), 'utf8')) as { files: { path: string }[] };
    expect(files.map(({ path }) => path)).toEqual([
      'database.sqlite',
      `images/1-${'0'.repeat(64)}`,
      'keys/auth-secret',
      'keys/secrets.json',
    ]);
  });

  it('that fails, as on a full disk, leaves nothing, and removes no earlier one', async () => {
    const out = temporaryDirectory('backups');
    const { path } = await backUp(out);
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    const copyDatabase: BackupOptions['copyDatabase'] = async (_options, folder) => {
      writeFileSync(join(folder, 'database.sqlite'), 'half');
      throw full;
    };
    const later = new Date(Date.now() + 2000);
    await expect(backUp(out, { copyDatabase, keep: 1, now: () => later })).rejects.toThrow(
      `There is no space left for a backup in ${out}.`,
    );
    const stopped = new AbortController();
    stopped.abort(new Error('Interrupted by SIGINT.'));
    await expect(backUp(out, { signal: stopped.signal, now: () => later })).rejects.toThrow('Interrupted by SIGINT.');
    expect(readdirSync(out).map((name) => join(out, name))).toEqual([path]);
  });

  it('replaces the oldest backups, and removes remains of killed backups', async () => {
    const out = temporaryDirectory('backups');
    const killed = join(out, '.partial-coordinator-20200101T000000Z-1');
    mkdirSync(killed);
    utimesSync(killed, 0, 0);
    writeFileSync(join(out, 'other-file'), '');
    for (const second of [1, 2, 3]) await backUp(out, { keep: 2, now: () => new Date(Date.UTC(2026, 0, 1, 0, 0, second)) });
    expect(readdirSync(out).sort()).toEqual(['coordinator-20260101T000002Z', 'coordinator-20260101T000003Z', 'other-file']);
  });
});

describe('a complete backup whose old backups cannot all be removed', () => {
  it('is reported as done with exit code 3, and the removable ones are removed', async () => {
    const out = temporaryDirectory('backups');
    for (const second of [1, 2]) await backUp(out, { now: () => new Date(Date.UTC(2026, 0, 1, 0, 0, second)) });
    const [stuck, removable] = ['coordinator-20260101T000001Z', 'coordinator-20260101T000002Z'];
    // A folder of the name that the removal needs first.
    mkdirSync(join(out, `.partial-${stuck}-${process.pid}`, 'file'), { recursive: true });
    const run = await runCommand(['backup', '--out', out, '--keep', '1', '--json'], env(source));
    const { path, removed, warnings } = JSON.parse(run.out) as { path: string; removed: string[]; warnings: string[] };
    expect({ removed, warnings }).toEqual({
      removed: [removable],
      warnings: [expect.stringMatching(new RegExp(`${stuck} could not be removed: E[A-Z]+\\.$`))],
    });
    expect(run).toMatchObject({ code: 3, err: `WARNING: The backup is complete, but ${warnings[0]}` });
    expect(existsSync(join(path, 'manifest.json'))).toBe(true);
    expect(readdirSync(out).filter((name) => !name.startsWith('.'))).toEqual([stuck, basename(path)]);
  });
});

describe('a disk that cannot be flushed after a rename', () => {
  const failing = (folder: string) => async (path: string) => {
    if (path === folder) throw Object.assign(new Error('i/o error'), { code: 'EIO' });
  };

  it('leaves a complete backup, which is reported as such, and the old ones', async () => {
    const out = temporaryDirectory('backups');
    const old = await backUp(out, { now: () => new Date(Date.UTC(2026, 0, 1)) });
    const { path, rotation } = await backUp(out, { keep: 1, syncFolder: failing(out) });
    expect(existsSync(join(path, 'manifest.json'))).toBe(true);
    const problem = `${out} could not be flushed to disk, so a power failure may lose the backup: EIO.`;
    expect(rotation).toEqual({ removed: [], problems: [problem] });
    expect(readdirSync(out).sort()).toEqual([basename(old.path), basename(path)]);
  });

  /** Restores over a folder with a file. */
  const restoreOver = async (dataDir: string, sync: (path: string) => Promise<void>): Promise<unknown> => {
    mkdirSync(join(dataDir, 'coordinator'));
    writeFileSync(join(dataDir, 'coordinator', 'file'), 'old');
    const write = async ({ path, activate }: StagedFolder): Promise<void> => {
      writeFileSync(join(path, 'file'), 'new');
      await activate();
    };
    return stageFolder(dataDir, 'now', write, sync).catch((error: unknown) => error);
  };

  it('restores nothing, and flushes the reverted names', async () => {
    const dataDir = temporaryDirectory('data');
    const flushed: string[][] = [];
    const error = await restoreOver(dataDir, async (path) => {
      flushed.push(readdirSync(path).sort());
      await failing(dataDir)(path);
    });
    expect(error).toMatchObject({ message: `${dataDir} cannot be written: EIO. Nothing was restored.` });
    expect(flushed[0]).toEqual(['coordinator', 'coordinator.before-restore-now']);
    expect(flushed[1]).toContain('coordinator');
    expect(flushed[1]).not.toContain('coordinator.before-restore-now');
    expect(readdirSync(dataDir)).toEqual(['coordinator']);
    expect(readFileSync(join(dataDir, 'coordinator', 'file'), 'utf8')).toBe('old');
  });

  it('names the folder of the old data if the names cannot be reverted', async () => {
    const dataDir = temporaryDirectory('data');
    const error = await restoreOver(dataDir, async (path) => {
      // Makes the next rename fail.
      rmSync(join(path, 'coordinator'), { recursive: true });
      await failing(dataDir)(path);
    });
    const old = join(dataDir, 'coordinator.before-restore-now');
    expect(error).toBeInstanceOf(UndoError);
    expect(error).toMatchObject({
      message: expect.stringContaining(`The restore failed (EIO) and could not be undone (ENOENT). The old data are in ${old}.`),
      cause: { errors: [{ code: 'EIO' }, { code: 'ENOENT' }] },
    });
    expect(readFileSync(join(old, 'file'), 'utf8')).toBe('old');
  });
});

describe('a restore refuses', () => {
  const refused = async (from: string, dataDir = join(temporaryDirectory('restored'), 'data'), change = {}): Promise<string> => {
    const before = existsSync(dataDir) ? readdirSync(dataDir) : null;
    const error: unknown = await restoreBackup(restoreOptions(from, env(dataDir), change)).catch((reason: unknown) => reason);
    if (before !== null) expect(readdirSync(dataDir)).toEqual(before);
    else expect(existsSync(join(dataDir, 'coordinator'))).toBe(false);
    return error instanceof Error ? error.message : 'nothing';
  };

  it('a file with one changed byte, a short file and a missing file', async () => {
    const backup = await copyOfGood();
    const file = join(backup, 'database.sqlite');
    const bytes = readFileSync(file);
    bytes[5000] = (bytes[5000] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    expect(await refused(backup)).toContain('database.sqlite is not the file');
    truncateSync(file, 4096);
    expect(await refused(backup)).toContain('database.sqlite is not the file');
    rmSync(file);
    expect(await refused(backup)).toContain('database.sqlite cannot be read (ENOENT)');
  });

  it('a folder without manifest, a manifest with a hole, and one of a newer format', async () => {
    const backup = await copyOfGood();
    changeManifest(backup, (manifest) => void delete manifest.migrations);
    expect(await refused(backup)).toContain('migrations');
    changeManifest(backup, (manifest) => (manifest.files = [{ path: '../../etc/passwd', bytes: 1, sha256: '0'.repeat(64) }]));
    expect(await refused(backup)).toContain('is damaged');
    changeManifest(backup, (manifest) => (manifest.format = 2));
    expect(await refused(backup)).toContain('restore with a newer program');
    rmSync(join(backup, 'manifest.json'));
    expect(await refused(backup)).toContain('is not a complete backup');
    expect(await refused(join(good, '..'))).toContain(`the newest is ${good}`);
  });

  it('another kind of database', async () => {
    const backup = await copyOfGood();
    changeManifest(backup, (manifest) => (manifest.database = { kind: 'postgres', server_version: '15.1', schema: 'public' }));
    expect(await refused(backup)).toContain('Set DATABASE_URL');
    const options = restoreOptions(good, { ...env(source), DATABASE_URL: 'postgres://127.0.0.1/any' });
    await expect(restoreBackup(options)).rejects.toThrow('Unset DATABASE_URL');
  });

  it('a newer schema, which a backup by this program copies unread', async () => {
    const folder = join(temporaryDirectory('backup-source'), 'coordinator');
    await cp(join(source, 'coordinator'), folder, { recursive: true });
    const newer = new Sqlite(join(folder, 'coordinator.db'));
    newer.exec(`insert into schema_migrations (name, timestamp) values ('9999_future', '')`);
    newer.close();
    const { path, manifest } = await createBackup(backupOptions(temporaryDirectory('backups'), env(join(folder, '..'))));
    expect(manifest).toMatchObject({ schema: '9999_future', ledger: null, transparency_log: null });
    expect(await refused(path)).toContain('newer program (test) with migrations that this one lacks: 9999_future');
  });

  it('a folder with files unless forced, and a file in use even then', async () => {
    const dataDir = temporaryDirectory('restored');
    await cp(source, dataDir, { recursive: true });
    expect(await refused(good, dataDir)).toContain('--force');
    const open = new Sqlite(join(dataDir, 'coordinator', 'coordinator.db'));
    open.prepare('select count(*) from accounts').get();
    expect(await refused(good, dataDir, { force: true })).toContain('Stop it');
    open.close();
    const { movedAside, problems } = await restoreBackup(restoreOptions(good, env(dataDir), { force: true }));
    expect(problems).toEqual([]);
    expect(readdirSync(movedAside[0] ?? '')).toEqual(readdirSync(join(source, 'coordinator')));
  });

  it('keys that are missing, or of another network', async () => {
    const out = temporaryDirectory('backups');
    const keyless = await backUp(out, { hasKeys: false });
    expect(existsSync(join(keyless.path, 'keys'))).toBe(false);
    expect(await refused(keyless.path)).toContain('--keys-from');
    const other = await copyOfGood();
    const secrets = join(other, 'keys', 'secrets.json');
    const text = readFileSync(secrets, 'utf8').replace(/"value": "[0-9a-f]{2}/, '"value": "00');
    writeFileSync(secrets, text);
    expect(await refused(keyless.path, undefined, { keysFrom: other })).toContain('is not the file');
  });
});

describePostgres('a restore into a schema in use', (fresh) => {
  it('refuses tables of other applications, and lists moved tables if its check fails', async () => {
    const place = await fresh('migrated');
    const { databaseUrl = '' } = place.config;
    const database = await openDatabase(place.target);
    await sql`drop table withdrawals cascade`.execute(database);
    const dataDir = temporaryDirectory('restored');
    const settings = { DATA_DIR: dataDir, DATABASE_URL: databaseUrl ?? '' };
    const { path } = await createBackup(backupOptions(temporaryDirectory('backups'), settings));
    const restore = () => restoreBackup(restoreOptions(path, settings, { force: true }));
    await sql`create table shop_customers (id integer)`.execute(database);
    await database.destroy();
    await expect(restore()).rejects.toThrow('not of a coordinator: shop_customers.');
    const again = await openDatabase(place.target);
    await sql`drop table shop_customers`.execute(again);
    await again.destroy();
    await expect(restore()).rejects.toThrow(
      /was restored, but not checked: .*withdrawals.* The replaced data are in the schema before_restore_\w+ of the database\./,
    );
    await place.remove();
  });
});

describe('a restored data directory', () => {
  it('has the keys of another backup, the images, and a log that continues', async () => {
    const out = temporaryDirectory('backups');
    const keyless = await backUp(out, { hasKeys: false, hasImages: true });
    const dataDir = temporaryDirectory('restored');
    const restored = await restoreBackup(restoreOptions(keyless.path, env(dataDir), { keysFrom: good }));
    expect(restored).toMatchObject({ problems: [], publishedEntries: 5, movedAside: [] });
    const folder = join(dataDir, 'coordinator');
    expect(readFileSync(join(folder, 'auth-secret'), 'utf8')).toBe('a'.repeat(43));
    expect(readdirSync(join(folder, 'images'))).toHaveLength(1);
    await withLog(folder, async (log) => expect(log.verifierKey).toBe(keyless.manifest.transparency_log?.verifier_key));
  });

  it('begins a new log under another key on request', async () => {
    const dataDir = temporaryDirectory('restored');
    const { newLogKey, problems } = await restoreBackup(restoreOptions(good, env(dataDir), { newLogOrigin: 'a.example/e2e/log-2' }));
    expect(problems).toEqual([]);
    await withLog(join(dataDir, 'coordinator'), async (log) => {
      expect(log.verifierKey).toBe(newLogKey);
      expect(await log.append({ v: 1, kind: 'revoked', provider_id: 'one' as ProviderId, since: 1 })).toBe(0);
    });
  });

  it('is reported if the ledger or the log of the backup does not hold', async () => {
    const folder = join(temporaryDirectory('backup-source'), 'coordinator');
    await cp(join(source, 'coordinator'), folder, { recursive: true });
    const bad = new Sqlite(join(folder, 'coordinator.db'));
    bad.exec(
      `insert into balances (account, balance, reserved, earned) values ('someone', 5, 0, 0); update log_entries set entry = '{}' where leaf_index = 2`,
    );
    bad.close();
    const { path } = await createBackup(backupOptions(temporaryDirectory('backups'), env(join(folder, '..'))));
    const { problems } = await restoreBackup(restoreOptions(path, env(temporaryDirectory('restored'))));
    expect(problems).toEqual([
      expect.stringContaining('ledger: a balance is not the sum of its postings'),
      'transparency log: entry 2 of the log was changed',
      'transparency log: the published root is not that of the entries',
      'transparency log: the stored nodes of the log are not those of its entries',
    ]);
  });

  async function withLog(folder: string, check: (log: TransparencyLog) => Promise<void>): Promise<void> {
    const database = await openDatabase({ file: join(folder, 'coordinator.db') });
    const options = { witnesses: [], quorum: 0, onWitnessFailure: () => {} };
    await check(await TransparencyLog.open({ database, origin: 'ignored', ...options }));
    await database.destroy();
  }
});
