/** `lockUpdates` prevents concurrent updates by the owner's command and the daemon. The lock of a dead process is ignored. */
import { closeSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { UpdateError } from './releases.js';

/** Returns the unlock function. Throws {@link UpdateError} if another update runs. */
export function lockUpdates(prefix: string): () => void {
  const path = join(prefix, 'update.lock');
  for (let tries = 0; tries < 2; tries++) {
    try {
      const file = openSync(path, 'wx', 0o600);
      writeSync(file, String(process.pid));
      closeSync(file);
      return () => rmSync(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      const holder = Number(readLock(path));
      if (isAlive(holder)) throw new UpdateError(`another update is in progress (process ${holder})`);
      // The rename decides between two processes that find the same dead lock.
      try {
        renameSync(path, `${path}.${process.pid}`);
      } catch {
        continue;
      }
      rmSync(`${path}.${process.pid}`, { force: true });
    }
  }
  throw new UpdateError('another update is in progress');
}

function readLock(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
