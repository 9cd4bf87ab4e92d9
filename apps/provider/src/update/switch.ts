/** Switches an installation to a version that is ready, and finds out what became of it. */
import { setTimeout as delay } from 'node:timers/promises';
import { currentVersion, presentVersions } from './layout.js';
import { UpdateError } from './releases.js';
import { beginTrial, readTrial } from './trial.js';

/** How long one start of a new version may take to show that it works. A large model takes its time. */
export const PATIENCE_MS = 5 * 60_000;
const LOOK_MS = 200;

/** The next start runs it, on trial. Throws {@link UpdateError} where it is not there. */
export function switchTo(prefix: string, version: string, patienceMs: number, now: number): void {
  if (!presentVersions(prefix).includes(version)) throw new UpdateError(`version ${version} is not here`);
  const previous = currentVersion(prefix);
  if (previous === version) return;
  if (previous === null) throw new UpdateError('the installation is damaged: run install.sh again');
  beginTrial(prefix, version, previous, patienceMs, now);
}

/** Resolves with whether it is this version that runs in the end; null where the time is over and it is on trial still. */
export async function awaitVerdict(prefix: string, version: string, limitMs: number, signal: AbortSignal): Promise<boolean | null> {
  const deadline = performance.now() + limitMs;
  while (readTrial(prefix) !== null) {
    if (performance.now() > deadline) return null;
    await delay(LOOK_MS, undefined, { signal });
  }
  return currentVersion(prefix) === version;
}
