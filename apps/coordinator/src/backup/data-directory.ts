/**
 * Replaces the coordinator's folder in the data directory during a restore: the new folder is written under a temporary name, then renamed.
 * An old folder with files is renamed, never deleted.
 */
import { chown, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorReason, StartupError } from '../config/startup-error.js';
import { isInUse } from '../database/backup/sqlite-copy.js';
import { exists, isDiskFull, makeDirectory, syncFolder } from './backup-folder.js';

const FOLDER = 'coordinator';

export async function isOccupied(dataDir: string): Promise<boolean> {
  const folder = join(dataDir, FOLDER);
  return (await exists(folder)) && (await readdir(folder)).length > 0;
}

/** Throws {@link StartupError} while a process has the database file open. */
export async function refuseOpenFile(dataDir: string): Promise<void> {
  const file = join(dataDir, FOLDER, 'coordinator.db');
  if ((await exists(file)) && isInUse(file)) {
    throw new StartupError(`A coordinator, or another program, has ${file} open. Stop it, then restore again.`);
  }
}

/** A restore failed after the folder was renamed, and the renames could not be reverted. */
export class UndoError extends StartupError {}

export interface StagedFolder {
  readonly path: string;
  /** Renames the staged folder into place. */
  activate(): Promise<ActiveFolder>;
}

export interface ActiveFolder {
  /** Path to which the old folder was renamed; null: there was none. */
  readonly old: string | null;
  /** Reverts the renames. `cause` is the error of the restore. Throws {@link UndoError}, which names both errors, if that fails. */
  undo(cause: unknown): Promise<void>;
}

/**
 * Runs `write` with a new private folder in the data directory. At the end, the folder is removed unless it is active.
 *
 * @param stamp Time for the names of the new and the old folder.
 * @param sync Flushes the data directory to disk, but not the files in the folder. Replaced by tests.
 * @throws {UndoError} The renames could not be reverted.
 * @throws {StartupError} The data directory cannot be written.
 */
export async function stageFolder(
  dataDir: string,
  stamp: string,
  write: (staged: StagedFolder) => Promise<void>,
  sync = syncFolder,
): Promise<void> {
  const staging = join(dataDir, `.${FOLDER}-restoring-${stamp}-${process.pid}`);
  const target = join(dataDir, FOLDER);
  const activate = async (): Promise<ActiveFolder> => {
    await chownTree(staging, dataDir);
    const old = (await isOccupied(dataDir)) ? join(dataDir, `${FOLDER}.before-restore-${stamp}`) : null;
    if (old !== null) await rename(target, old);
    let isReplaced = false;
    const undo = async (cause: unknown): Promise<void> => {
      try {
        if (isReplaced) await rename(target, staging);
        if (old !== null) await rename(old, target);
      } catch (error) {
        throw undoError(target, old, [cause, error]);
      }
      // A failed flush is ignored: the old data are in place, and the caller reports `cause`.
      await sync(dataDir).catch(() => {});
    };
    try {
      // `rename` replaces an empty folder, but fails if another process has written files into it meanwhile.
      await rename(staging, target);
      isReplaced = true;
      await sync(dataDir);
    } catch (error) {
      await undo(error);
      throw error;
    }
    return { old, undo };
  };
  try {
    await makeDirectory(dataDir);
    await mkdir(staging, { mode: 0o700 });
    await write({ path: staging, activate });
  } catch (error) {
    if (error instanceof UndoError) throw error;
    if (isDiskFull(error)) throw new StartupError(`There is no space left in ${dataDir}. Nothing was restored.`, { cause: error });
    const reason = errorReason(error);
    if (/^E[A-Z]+$/.test(reason))
      throw new StartupError(`${dataDir} cannot be written: ${reason}. Nothing was restored.`, { cause: error });
    throw error;
  } finally {
    // Does nothing while the folder is active. After `undo`, removes the restored data. A failure leaves the folder, and must not replace
    // the error of the restore.
    await rm(staging, { recursive: true, force: true }).catch(() => {});
  }
}

function undoError(target: string, old: string | null, errors: readonly [cause: unknown, error: unknown]): UndoError {
  const [failed, undoFailed] = errors.map(errorReason);
  const remedy =
    old === null
      ? `There were no old data. Remove ${target}, then restore again.`
      : `The old data are in ${old}. To use them, remove ${target} if it exists, and rename that folder to ${target}.`;
  return new UndoError(`The restore failed (${failed}) and could not be undone (${undoFailed}). ${remedy}`, {
    cause: new AggregateError(errors),
  });
}

/** Gives files that root restored to the owner of the data directory, because the coordinator runs as that user. */
async function chownTree(path: string, like: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await lstat(like);
  await chown(path, uid, gid);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await chownTree(join(path, entry.name), like);
    else await chown(join(path, entry.name), uid, gid);
  }
}
