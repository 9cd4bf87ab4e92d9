/**
 * `confirmTrial` ends the trial of the running version when the version has proved itself.
 *
 * It must answer commands and be registered with the coordinator. If the coordinator is unreachable, a minimum run time replaces the
 * registration.
 */
import { prune } from './layout.js';
import { endTrial, readTrial } from './trial.js';

export interface Health {
  readonly registered: boolean;
  /** Not even an error response came. */
  readonly isCoordinatorUnreachable: boolean;
  /** Whether the daemon answers on the control socket. */
  readonly answersCommands: boolean;
  readonly runningForMs: number;
}

/** Minimum run time without a reachable coordinator. */
export const MIN_OFFLINE_RUN_MS = 60_000;

export function isHealthy({ registered, isCoordinatorUnreachable, answersCommands, runningForMs }: Health): boolean {
  if (!answersCommands) return false;
  return registered || (isCoordinatorUnreachable && runningForMs >= MIN_OFFLINE_RUN_MS);
}

const POLL_INTERVAL_MS = 1_000;

interface ConfirmOptions {
  readonly prefix: string;
  readonly version: string;
  readonly health: () => Promise<Health>;
  readonly signal: AbortSignal;
}

/** Resolves to false if this version is not on trial, or on abort. */
export async function confirmTrial({ prefix, version, health, signal }: ConfirmOptions): Promise<boolean> {
  const trial = readTrial(prefix);
  if (trial === null || trial.version !== version) return false;
  const aborted = new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }));
  while (!signal.aborted) {
    // A stopping daemon does not wait for the check.
    const found = await Promise.race([health().catch(() => null), aborted]);
    if (found !== null && isHealthy(found)) {
      endTrial(prefix);
      // The previous version stays on disk for a manual rollback.
      prune(prefix, [version, trial.previous]);
      return true;
    }
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, POLL_INTERVAL_MS);
      signal.addEventListener('abort', done, { once: true });
    });
  }
  return false;
}
