/** `restoreBackup` verifies a backup, then replaces database, keys and stored images. Old data are renamed, never deleted. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { errorReason, StartupError } from '../config/startup-error.js';
import { loadScript } from '../database/backup/load-script.js';
import type { PostgresTarget } from '../database/backup/postgres-snapshot.js';
import { type RestoredRows, restoredRowStatements } from '../database/backup/restored-rows.js';
import { type DatabaseTarget, openDatabase } from '../database/connection/open-database.js';
import { unknownMigrations } from '../database/migrations/schema-state.js';
import { LOG_KEY_SECRET } from '../transparency-log/transparency-log.js';
import { listBackups } from './backup-folder.js';
import { isOccupied, refuseOpenFile, type StagedFolder, stageFolder } from './data-directory.js';
import { copyVerified, verifyFiles } from './files.js';
import { type BackupKeys, NO_KEYS, readKeys } from './keys.js';
import { verifierKeyOf } from './log-key.js';
import { DATABASE_FILES, IMAGES_FOLDER, type Manifest, readManifest } from './manifest.js';
import { findPostgresTool, loadDump } from './postgres-tools.js';
import { restoreTarget } from './restore-target.js';
import { checkRestored, type RestoredCheck } from './restored-check.js';

export interface RestoreOptions {
  readonly config: Pick<Config, 'dataDir' | 'databaseUrl'>;
  /** Folder of one backup. */
  readonly from: string;
  /** Whether existing data are renamed. If false, existing data are an error. */
  readonly force: boolean;
  /** Folder of another backup, whose keys are used. Null: the keys of `from`. */
  readonly keysFrom: string | null;
  /** Restores no keys, so coordinators create new ones. */
  readonly newKeys: boolean;
  /** Retains sessions, although some may have ended since the backup. */
  readonly keepSessions: boolean;
  /** Origin of a new transparency log. Null: the log of the backup continues. */
  readonly newLogOrigin: string | null;
  readonly postgresBin: string | null;
  readonly signal: AbortSignal;
}

export interface Restored extends RestoredCheck {
  readonly manifest: Manifest;
  /** Where the replaced data are now: a folder, a schema of the database, or both. */
  readonly movedAside: readonly string[];
  /** Verifier key of the new transparency log; null: no new log was begun. */
  readonly newLogKey: string | null;
}

/** The data were restored but not checked, because the database could not be opened or the check threw. */
export class UncheckedError extends StartupError {}

/** Throws {@link StartupError}. No data have changed, unless the error is an {@link UncheckedError} or an `UndoError`. */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { config, from, force, signal } = options;
  await refuseFolderOfBackups(from);
  const manifest = await readManifest(from);
  refuseIncompatible(manifest, config);
  await verifyFiles(from, manifest.files, signal);
  const keys = await keysFor(options, manifest);
  const rows = restoredRows(options, keys);
  await refuseOpenFile(config.dataDir);
  const { databaseUrl } = config;
  const postgres = databaseUrl === null ? null : { url: databaseUrl, target: await restoreTarget(databaseUrl, manifest) };
  if (!force) await refuseOccupied(config.dataDir, postgres?.target ?? null);
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const movedAside: string[] = [];
  let check: RestoredCheck | undefined;
  await stageFolder(config.dataDir, stamp, async (staged) => {
    await copyImages(options, manifest, staged);
    await keys.copyTo(staged.path);
    // A database file is restored and checked before the folder replaces the old one.
    if (postgres === null) {
      const file = join(staged.path, 'coordinator.db');
      await restoreFile(options, manifest, rows, file);
      check = await openAndCheck({ file }, manifest, options);
      await refuseOpenFile(config.dataDir);
    }
    const { old, undo } = await staged.activate();
    if (old !== null) movedAside.push(old);
    if (postgres === null) return;
    // PostgreSQL is changed last, in one transaction, because a changed folder can be undone.
    const aside = `before_restore_${stamp.toLowerCase()}`;
    try {
      await restoreDump({ options, manifest, rows, ...postgres, aside });
    } catch (error) {
      await undo(error);
      throw error;
    }
    if (postgres.target.tables.length > 0) movedAside.push(`the schema ${aside} of the database`);
  });
  if (postgres !== null) {
    check = await openAndCheck({ url: postgres.url }, manifest, options).catch((error: unknown) => {
      throw uncheckedError(error, { from, movedAside });
    });
  }
  if (check === undefined) throw new Error('the restored data were not checked');
  return { ...check, manifest, movedAside, newLogKey: rows.newLogOrigin === null ? null : rows.newLogKey };
}

function uncheckedError(
  error: unknown,
  { from, movedAside }: { readonly from: string; readonly movedAside: readonly string[] },
): UncheckedError {
  const message = error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
  const reason = message === '' ? errorReason(error) : message;
  const aside = movedAside.length === 0 ? 'There were no earlier data.' : `The replaced data are in ${movedAside.join(' and ')}.`;
  return new UncheckedError(
    `${from} was restored, but not checked: ${reason.replace(/\.$/, '')}. ${aside} Before you start a coordinator: inference-coordinator ledger-check`,
    { cause: error },
  );
}

async function refuseFolderOfBackups(from: string): Promise<void> {
  const newest = (await listBackups(from).catch(() => [])).at(-1);
  if (newest !== undefined)
    throw new StartupError(`${from} is a folder of backups. Name one of them; the newest is ${join(from, newest)}.`);
}

function refuseIncompatible({ database, migrations, program }: Manifest, { databaseUrl }: RestoreOptions['config']): void {
  const unknown = unknownMigrations(migrations);
  if (unknown.length > 0) {
    throw new StartupError(
      `The backup is of a newer program (${program}) with migrations that this one lacks: ${unknown.join(', ')}. Restore with that program.`,
    );
  }
  if (database.kind === 'sqlite' && databaseUrl !== null) {
    throw new StartupError('The backup is of a database file, and DATABASE_URL names a PostgreSQL database. Unset DATABASE_URL.');
  }
  if (database.kind === 'postgres' && databaseUrl === null) {
    throw new StartupError('The backup is of a PostgreSQL database. Set DATABASE_URL to the database to restore into.');
  }
}

async function keysFor({ from, keysFrom, newKeys, signal }: RestoreOptions, manifest: Manifest): Promise<BackupKeys> {
  if (newKeys) return NO_KEYS;
  if (!manifest.has_keys && keysFrom === null) {
    throw new StartupError(
      'The backup has no keys. Name a backup of the same network that has them with --keys-from, or have new keys made with --new-keys: ' +
        'second factors, image URLs and the transparency log of the backup are then lost.',
    );
  }
  return readKeys(keysFrom ?? from, manifest, signal);
}

interface RowsWithKey extends RestoredRows {
  /** Verifier key of the new transparency log; null: the log of the backup continues. */
  readonly newLogKey: string | null;
}

/** Database rows that the restore replaces. New keys require a new log, because a log cannot continue without its key. */
function restoredRows({ keepSessions, newLogOrigin, newKeys }: RestoreOptions, keys: BackupKeys): RowsWithKey {
  if (newKeys && newLogOrigin === null) {
    throw new StartupError('--new-keys needs --new-log with another origin: nobody can sign the log of the backup without its key.');
  }
  const secrets = newLogOrigin === null ? keys.secrets : withNewLogKey(keys.secrets);
  return {
    secrets,
    endSessions: !keepSessions,
    newLogOrigin,
    newLogKey: newLogOrigin === null ? null : verifierKeyOf(newLogOrigin, secrets),
  };
}

function withNewLogKey(secrets: RestoredRows['secrets']): RestoredRows['secrets'] {
  const others = secrets.filter(({ name }) => name !== LOG_KEY_SECRET);
  return [...others, { name: LOG_KEY_SECRET, value: randomBytes(32).toString('hex') }];
}

async function refuseOccupied(dataDir: string, target: PostgresTarget | null): Promise<void> {
  if (target !== null && target.tables.length > 0) {
    throw new StartupError(
      `The database has ${target.tables.length} tables already. With --force, they are moved to another schema first.`,
    );
  }
  if (await isOccupied(dataDir)) {
    throw new StartupError(`${join(dataDir, 'coordinator')} is not empty. With --force, the folder is renamed first.`);
  }
}

async function copyImages({ from, signal }: RestoreOptions, { files }: Manifest, staged: StagedFolder): Promise<void> {
  for (const file of files.filter(({ path }) => path.startsWith(`${IMAGES_FOLDER}/`))) {
    await copyVerified(from, file, join(staged.path, file.path), signal);
  }
}

async function restoreFile({ from, signal }: RestoreOptions, { files }: Manifest, rows: RestoredRows, file: string): Promise<void> {
  await copyVerified(from, databaseEntry(files, 'sqlite'), file, signal);
  // Opening applies pending migrations, so all tables exist.
  const database = await openDatabase({ file });
  try {
    await database.transaction().execute(async (transaction) => {
      for (const { statement } of restoredRowStatements(rows, null)) await statement.execute(transaction);
    });
  } finally {
    await database.destroy();
  }
}

async function openAndCheck(place: DatabaseTarget, manifest: Manifest, { newLogOrigin }: RestoreOptions): Promise<RestoredCheck> {
  const database = await openDatabase(place);
  try {
    return await checkRestored(database, manifest, newLogOrigin !== null);
  } finally {
    await database.destroy();
  }
}

interface DumpOptions {
  readonly options: RestoreOptions;
  readonly manifest: Manifest;
  readonly rows: RestoredRows;
  readonly url: string;
  readonly target: PostgresTarget;
  readonly aside: string;
}

/** Moves existing tables to the schema `aside`, loads the dump and replaces `rows`, in one transaction. */
async function restoreDump({ options, manifest, rows, url, target, aside }: DumpOptions): Promise<void> {
  const { from, postgresBin, signal } = options;
  const { schema, serverMajor, tables } = target;
  const dump = join(from, databaseEntry(manifest.files, 'postgres').path);
  const pgRestore = await findPostgresTool('pg_restore', serverMajor, postgresBin);
  const psql = await findPostgresTool('psql', serverMajor, postgresBin);
  const { before, after } = loadScript({ schema, tables, aside, rows });
  const restore = [pgRestore, '--no-owner', '--no-privileges', `--schema=${schema}`, '--file=-', dump] as const;
  await loadDump({ restore, psql, before, after }, { url, signal });
}

function databaseEntry(files: Manifest['files'], kind: 'sqlite' | 'postgres') {
  const file = files.find(({ path }) => path === DATABASE_FILES[kind]);
  if (file === undefined) throw new StartupError(`The backup is damaged: its manifest names no ${DATABASE_FILES[kind]}.`);
  return file;
}
