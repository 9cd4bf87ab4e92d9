/**
 * `lockUpdates` prevents concurrent updates by the owner's command, the daemon and `install.sh`. The lock of a dead process is ignored.
 *
 * The file holds a process id. Its modification time tells a holder from a later process with the same id.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UpdateError } from './releases.js';

/** Returns the unlock function. Throws {@link UpdateError} if another update runs. */
export function lockUpdates(prefix: string): () => void {
  const path = join(prefix, 'update.lock');
  const own = `${path}.${randomUUID()}`;
  // Written before it becomes the lock, because others take an empty lock for a dead one.
  writeFileSync(own, String(process.pid), { mode: 0o600, flag: 'wx' });
  try {
    if (!isLinked(own, path) && !replacesDeadLock(own, path)) throw new UpdateError('another update is in progress');
  } finally {
    rmSync(own, { force: true });
  }
  return () => rmSync(path, { force: true });
}

/** Whether `path` now names the file `own`. False if `path` exists. */
function isLinked(own: string, path: string): boolean {
  try {
    linkSync(own, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Makes `own` the lock if the lock at `path` is dead. A second lock ensures that only one process replaces it. */
function replacesDeadLock(own: string, path: string): boolean {
  refuseHeld(path);
  const claim = `${path}.claim`;
  if (!isLinked(own, claim)) {
    // Left by a process that died meanwhile. The next try replaces the lock.
    if (holderOf(claim) === null) rmSync(claim, { force: true });
    return false;
  }
  try {
    if (refuseHeld(path) === 'absent') return isLinked(own, path);
    renameSync(own, path);
    return true;
  } finally {
    rmSync(claim, { force: true });
  }
}

function refuseHeld(path: string): 'absent' | 'dead' {
  const holder = holderOf(path);
  if (holder === 'absent') return holder;
  if (holder === 'unknown') throw new UpdateError('another update is in progress');
  if (holder !== null) throw new UpdateError(`another update is in progress (process ${holder})`);
  return 'dead';
}

/** Age after which a lock without a process id is dead. `install.sh` of older versions writes the id after creating the file. */
const MAX_EMPTY_MS = 10_000;

/** Process that holds a lock. Null: the lock is dead. */
function holderOf(path: string): number | 'unknown' | 'absent' | null {
  let text: string;
  let writtenAt: number;
  try {
    text = readFileSync(path, 'utf8');
    writtenAt = statSync(path).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'absent';
    throw error;
  }
  const pid = Number(text);
  if (!Number.isInteger(pid) || pid <= 0) return Date.now() - writtenAt < MAX_EMPTY_MS ? 'unknown' : null;
  return isAlive(pid) && !hasStartedAfter(pid, writtenAt) ? pid : null;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Tolerance in milliseconds for clocks that were set, and for the resolution of `ps`. */
const START_TOLERANCE_MS = 60_000;

/** Whether a process started later than the given time, in milliseconds. False if the start is unknown. */
function hasStartedAfter(pid: number, timeMs: number): boolean {
  let elapsed: string;
  try {
    const env = { ...process.env, LC_ALL: 'C' };
    elapsed = execFileSync('ps', ['-o', 'etime=', '-p', String(pid)], { encoding: 'utf8', env, timeout: 5000, stdio: 'pipe' });
  } catch {
    return false;
  }
  const [whole, days = '0', hours = '0', minutes, seconds] = /^\s*(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)\s*$/.exec(elapsed) ?? [];
  if (whole === undefined) return false;
  const elapsedMs = 1000 * (((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds));
  return Date.now() - elapsedMs > timeMs + START_TOLERANCE_MS;
}
