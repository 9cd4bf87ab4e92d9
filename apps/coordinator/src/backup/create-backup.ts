/** `createBackup` copies the database as of one moment, and optionally keys and images, while coordinators may run. */
import { chmod, copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { errorReason } from '../config/startup-error.js';
import { withSnapshot } from '../database/backup/postgres-snapshot.js';
import type { SecretRow } from '../database/backup/restored-rows.js';
import { type CopiedDatabase, copySqlite } from '../database/backup/sqlite-copy.js';
import { backupName, exists, type Rotation, rotateBackups, type syncFolder, writeBackupFolder } from './backup-folder.js';
import { describeFiles } from './files.js';
import { signedLogHead } from './log-key.js';
import { DATABASE_FILES, IMAGES_FOLDER, KEYS_FOLDER, MANIFEST_FILE, MANIFEST_FORMAT, type Manifest, SECRETS_FILE } from './manifest.js';
import { findPostgresTool, runPostgresTool } from './postgres-tools.js';

export interface BackupOptions {
  readonly config: Pick<Config, 'dataDir' | 'databaseUrl'>;
  /** Folder of backups. */
  readonly out: string;
  readonly hasKeys: boolean;
  readonly hasImages: boolean;
  /** Number of backups to retain; null: all. */
  readonly keep: number | null;
  /** Folder of PostgreSQL's programs. Null: the PATH and the folders of packages. */
  readonly postgresBin: string | null;
  readonly programVersion: string;
  /** Names of set variables that a restored coordinator needs too. */
  readonly settings: readonly string[];
  readonly signal: AbortSignal;
  /** Replaced by tests. */
  readonly now?: () => Date;
  readonly copyDatabase?: typeof copyDatabase;
  readonly syncFolder?: typeof syncFolder;
}

export interface Backup {
  readonly path: string;
  readonly manifest: Manifest;
  readonly rotation: Rotation;
}

export const KEY_FILES = ['auth-secret', 'development-keys.json'] as const;

/** Writes one backup, then removes old ones. A failure leaves no incomplete backup. */
export async function createBackup(options: BackupOptions): Promise<Backup> {
  const { out, signal } = options;
  const createdAt = options.now?.() ?? new Date();
  let manifest: Manifest | undefined;
  const write = async (folder: string): Promise<void> => {
    const { facts, figures, secrets } = await (options.copyDatabase ?? copyDatabase)(options, folder);
    signal.throwIfAborted();
    if (options.hasKeys) await copyKeys(options, secrets, join(folder, KEYS_FOLDER));
    if (options.hasImages) await copyImages(options, join(folder, IMAGES_FOLDER));
    manifest = {
      format: MANIFEST_FORMAT,
      program: options.programVersion,
      created_at: createdAt.toISOString(),
      database: facts,
      schema: figures.migrations.at(-1) ?? '',
      migrations: [...figures.migrations],
      has_keys: options.hasKeys,
      has_images: options.hasImages,
      settings: [...options.settings],
      ledger: figures.ledger === null ? null : ledgerPart(figures.ledger),
      transparency_log: figures.logHead === null ? null : signedLogHead(figures.logHead, secrets, createdAt),
      files: await describeFiles(folder, signal),
    };
    await writeFile(join(folder, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600, flush: true });
    signal.throwIfAborted();
  };
  const { path, problem } = await writeBackupFolder(out, backupName(createdAt), write, options.syncFolder);
  if (manifest === undefined) throw new Error('the backup has no manifest');
  // Old backups stay until a newer one is safe.
  const rotation = problem === null ? await rotateBackups(out, options.keep, createdAt.getTime()) : { removed: [], problems: [problem] };
  return { path, manifest, rotation };
}

interface CopiedWithFacts extends CopiedDatabase {
  readonly facts: Manifest['database'];
}

async function copyDatabase(options: BackupOptions, folder: string): Promise<CopiedWithFacts> {
  const { databaseUrl, dataDir } = options.config;
  return databaseUrl === null
    ? { facts: { kind: 'sqlite' }, ...(await copySqlite(databaseFile(dataDir), join(folder, DATABASE_FILES.sqlite))) }
    : dumpPostgres(databaseUrl, join(folder, DATABASE_FILES.postgres), options);
}

function databaseFile(dataDir: string): string {
  return join(dataDir, 'coordinator', 'coordinator.db');
}

async function dumpPostgres(url: string, file: string, { postgresBin, signal }: BackupOptions): Promise<CopiedWithFacts> {
  const { figures, snapshot } = await withSnapshot(url, async ({ id, schema, serverMajor }) => {
    const tool = await findPostgresTool('pg_dump', serverMajor, postgresBin);
    const pattern = `"${schema.replaceAll('"', '""')}"`;
    const content = [`--schema=${pattern}`, `--exclude-table-data=${pattern}.secrets`, '--no-owner', '--no-privileges'];
    const args = ['--format=custom', `--snapshot=${id}`, '--lock-wait-timeout=30s', '--no-password', ...content, `--file=${file}`];
    await runPostgresTool(tool, args, { url, signal });
    await chmod(file, 0o600);
  });
  const { secrets, serverVersion: server_version, schema } = snapshot;
  return { figures, secrets, facts: { kind: 'postgres', server_version, schema } };
}

async function copyKeys({ config }: BackupOptions, secrets: readonly SecretRow[], folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o700 });
  await writeFile(join(folder, SECRETS_FILE.slice(KEYS_FOLDER.length + 1)), `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  for (const name of KEY_FILES) {
    const file = join(config.dataDir, 'coordinator', name);
    if (!(await exists(file))) continue;
    await copyFile(file, join(folder, name));
    await chmod(join(folder, name), 0o600);
  }
}

/** Copies stored images. Images that expire during the copy are skipped. */
async function copyImages({ config, signal }: BackupOptions, folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o700 });
  const source = join(config.dataDir, 'coordinator', 'images');
  if (!(await exists(source))) return;
  for (const name of await readdir(source)) {
    signal.throwIfAborted();
    // `ImageStore` is still writing this file.
    if (name.endsWith('.part')) continue;
    try {
      await copyFile(join(source, name), join(folder, name));
      await chmod(join(folder, name), 0o600);
    } catch (error) {
      if (errorReason(error) !== 'ENOENT') throw error;
    }
  }
}

function ledgerPart({ postings, accounts, jobs, holds, held, owed, fees }: NonNullable<CopiedDatabase['figures']['ledger']>) {
  return { postings, accounts, jobs, holds, held, owed, fees };
}
