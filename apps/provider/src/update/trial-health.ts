/**
 * When a version on trial has shown that it works, and what is done then. It must hold a registered session with its
 * coordinator; where the coordinator cannot be reached at all, which is no fault of the version, it must have run for a while
 * and answered its owner's commands.
 */
import { prune } from './layout.js';
import { endTrial, readTrial } from './trial.js';

export interface Health {
  readonly registered: boolean;
  /** The coordinator gave no answer at all: not even that it refuses. */
  readonly isCoordinatorUnreachable: boolean;
  /** Asked over the control socket, as a command would. */
  readonly answersCommands: boolean;
  readonly runningForMs: number;
}

/** How long a version has to run that cannot reach its coordinator. */
export const MIN_OFFLINE_RUN_MS = 60_000;

export function isHealthy({ registered, isCoordinatorUnreachable, answersCommands, runningForMs }: Health): boolean {
  if (!answersCommands) return false;
  return registered || (isCoordinatorUnreachable && runningForMs >= MIN_OFFLINE_RUN_MS);
}

const POLL_INTERVAL_MS = 1_000;

export interface TrialEnd {
  readonly prefix: string;
  readonly version: string;
  readonly health: () => Promise<Health>;
  readonly signal: AbortSignal;
}

/** Ends the trial of this version, if it is on trial, once it works. Resolves with whether it did. Never rejects. */
export async function confirmTrial({ prefix, version, health, signal }: TrialEnd): Promise<boolean> {
  const trial = readTrial(prefix);
  if (trial === null || trial.version !== version) return false;
  const aborted = new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }));
  while (!signal.aborted) {
    // A daemon that ends does not wait for an answer.
    const found = await Promise.race([health().catch(() => null), aborted]);
    if (found !== null && isHealthy(found)) {
      endTrial(prefix);
      // The one before stays, for an owner who wants it back.
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
