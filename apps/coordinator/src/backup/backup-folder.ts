/** Writes a backup into the folder of `backup --out` under a temporary name, renames it when complete, and removes old backups. */
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorReason, StartupError } from '../config/startup-error.js';
import { MANIFEST_FILE } from './manifest.js';

const NAME = /^coordinator-\d{8}T\d{6}Z$/;
const PARTIAL_PREFIX = '.partial-';
/** Age at which the folder of an interrupted backup is removed. */
const ABANDONED_MS = 86_400_000;

/** Folder name of a backup, such as `coordinator-20260131T043000Z`. */
export function backupName(at: Date): string {
  return `coordinator-${at.toISOString().replace(/[-:]|\.\d+/g, '')}`;
}

export interface WrittenBackup {
  readonly path: string;
  /** Sentence that says why a crash of the machine may lose the complete backup; null: it is on disk. */
  readonly problem: string | null;
}

/**
 * Runs `write` with a new private folder. Renames the folder to `name` on success, and removes it on failure.
 *
 * @param sync Replaced by tests.
 * @throws {StartupError} The folder cannot be written. Other errors are those of `write`.
 */
export async function writeBackupFolder(
  parent: string,
  name: string,
  write: (folder: string) => Promise<void>,
  sync = syncFolder,
): Promise<WrittenBackup> {
  const path = join(parent, name);
  const partial = join(parent, `${PARTIAL_PREFIX}${name}-${process.pid}`);
  try {
    await makeDirectory(parent);
    if (await exists(path)) throw new StartupError(`There is a backup ${path} already. Try again in a second.`);
    await mkdir(partial, { mode: 0o700 });
    await write(partial);
    await sync(partial);
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw isDiskFull(error)
      ? new StartupError(`There is no space left for a backup in ${parent}.`, { cause: error })
      : withFolderName(error, parent);
  }
  // The backup is complete, so a failure from here on must not be reported as a missing backup.
  try {
    await sync(parent);
    return { path, problem: null };
  } catch (error) {
    return { path, problem: `${parent} could not be flushed to disk, so a power failure may lose the backup: ${errorReason(error)}.` };
  }
}

/** Names of the complete backups in a folder, oldest first. */
export async function listBackups(parent: string): Promise<string[]> {
  const names = (await readdir(parent)).filter((name) => NAME.test(name)).sort();
  const complete = await Promise.all(names.map((name) => exists(join(parent, name, MANIFEST_FILE))));
  return names.filter((_, index) => complete[index]);
}

export interface Rotation {
  readonly removed: readonly string[];
  /** One sentence per folder that could not be read, removed or flushed to disk. */
  readonly problems: readonly string[];
}

/** Removes all but the newest `keep` backups, and folders of interrupted backups. Never rejects, because the new backup is complete. */
export async function rotateBackups(parent: string, keep: number | null, now: number): Promise<Rotation> {
  const removed: string[] = [];
  // A set, because a folder whose removal failed may be tried again as an abandoned folder.
  const problems = new Set<string>();
  const attempt = async (failure: string, work: () => Promise<void>): Promise<boolean> => {
    try {
      await work();
      return true;
    } catch (error) {
      problems.add(`${failure}: ${errorReason(error)}.`);
      return false;
    }
  };
  const remove = (path: string) => attempt(`${path} could not be removed`, () => rm(path, { recursive: true, force: true }));
  await attempt(`the old backups in ${parent} could not be listed`, async () => {
    const old = keep === null ? [] : (await listBackups(parent)).slice(0, -keep);
    for (const name of old) {
      // Renamed first, because a half-removed folder must not look like a backup.
      const [path, renamed] = [join(parent, name), join(parent, `${PARTIAL_PREFIX}${name}-${process.pid}`)];
      const isRenamed = await attempt(`${path} could not be removed`, () => rename(path, renamed));
      if (isRenamed && (await remove(renamed))) removed.push(name);
    }
  });
  await attempt(`interrupted backups in ${parent} could not be listed`, async () => {
    for (const name of await readdir(parent)) {
      if (!name.startsWith(PARTIAL_PREFIX)) continue;
      const path = join(parent, name);
      const facts = await stat(path).catch(() => null);
      if (facts !== null && now - facts.mtimeMs > ABANDONED_MS) await remove(path);
    }
  });
  return { removed, problems: [...problems] };
}

/** Creates a private directory and missing ancestors. Node's own recursive `mkdir` never returns under /proc. */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const reason = errorReason(error);
    if (reason === 'EEXIST') return;
    const parent = dirname(path);
    if (reason !== 'ENOENT' || parent === path) throw error;
    await makeDirectory(parent);
    await mkdir(path, { mode: 0o700 });
  }
}

/** Makes new and renamed entries of a folder durable (fsync of the directory). */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (errorReason(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Recognises error codes of Node.js and SQLite, and the messages of PostgreSQL's programs. */
export function isDiskFull(error: unknown): boolean {
  const reason = errorReason(error);
  return (
    reason === 'ENOSPC' || reason === 'EDQUOT' || reason === 'SQLITE_FULL' || /No space left on device|Disk quota exceeded/.test(reason)
  );
}

/** Converts a system error to a StartupError that names the folder. Returns other errors unchanged. */
function withFolderName(error: unknown, parent: string): unknown {
  const reason = errorReason(error);
  const isSystem = /^(E[A-Z]+|SQLITE_[A-Z_]+)$/.test(reason);
  return isSystem ? new StartupError(`No backup could be written to ${parent}: ${reason}.`, { cause: error }) : error;
}
