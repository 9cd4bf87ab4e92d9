/**
 * `lockUpdates` prevents concurrent updates by the owner's command, the daemon and `install.sh`. The lock of a dead process is ignored.
 *
 * The file holds a process id and, on the second line, the start of the process, which tells it from a later one with the same id.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UpdateError } from './releases.js';

/** Returns the unlock function. Throws {@link UpdateError} if another update runs. */
export function lockUpdates(prefix: string): () => void {
  const path = join(prefix, 'update.lock');
  const own = `${path}.${randomUUID()}`;
  // Written before it becomes the lock, because others take an empty lock for a dead one.
  writeFileSync(own, `${process.pid}\n${startOf(process.pid) ?? ''}\n`, { mode: 0o600, flag: 'wx' });
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
    if (holderOf(claim) === null) removeDeadClaim(claim, `${own}.dead`);
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

/** Renames first: `claim` may name the live claim of another process since it was read. Such a claim is put back. */
export function removeDeadClaim(claim: string, renamed: string): void {
  try {
    renameSync(claim, renamed);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  try {
    if (holderOf(renamed) !== null) isLinked(renamed, claim);
  } finally {
    rmSync(renamed, { force: true });
  }
}

/** Throws {@link UpdateError} unless the lock is dead or absent. */
function refuseHeld(path: string): 'absent' | 'dead' {
  const holder = holderOf(path);
  if (holder === 'absent') return holder;
  if (holder === 'unknown') throw new UpdateError('another update is in progress');
  if (holder !== null) throw new UpdateError(`another update is in progress (process ${holder})`);
  return 'dead';
}

/** Age after which a lock without a process id is dead. `install.sh` of older versions writes the id after creating the file. */
const MAX_EMPTY_MS = 10_000;

/** Id of the process that holds a lock, `unknown` while it is being written. Null if the lock is dead. */
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
  const [id = '', start = ''] = text.split('\n');
  const pid = Number(id);
  if (!Number.isInteger(pid) || pid <= 0) return Date.now() - writtenAt < MAX_EMPTY_MS ? 'unknown' : null;
  if (!isAlive(pid)) return null;
  // Older versions write no start.
  const found = start.trim() === '' ? null : startOf(pid);
  return found === null || found === start.trim() ? pid : null;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Start of a process, as text that does not change if the clock is set. Null if unknown. `install.sh` has the same rule. */
function startOf(pid: number): string | null {
  try {
    // Field 22 of stat, in clock ticks since boot; the name, field 2, is in brackets and may contain spaces (proc_pid_stat(5)).
    if (existsSync('/proc/self/stat'))
      return (
        readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ')[19] ?? null
      );
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC0' };
    const start = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env, timeout: 5000, stdio: 'pipe' }).trim();
    return start === '' ? null : start;
  } catch {
    return null;
  }
}
