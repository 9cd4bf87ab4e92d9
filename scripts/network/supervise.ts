/** `supervise` restarts a child after an unrequested exit, with a pause, up to a limit. */
import type { Child } from './child.js';

export interface Supervised {
  /** The running process. */
  readonly current: Child;
  stop(): Promise<void>;
}

export interface SuperviseOptions {
  readonly start: () => Promise<Child>;
  /** Called on every unrequested exit that leads to a restart. */
  readonly onRestart: (ended: Child) => void;
  /** Called with each restarted process. */
  readonly onRestarted?: (child: Child) => void;
  /** How the child is stopped. Default: `Child.stop`. */
  readonly stop?: (child: Child) => Promise<void>;
  /** Called when the child ended too often, or could not be started again. */
  readonly onFailed: (ended: Child) => void;
}

const RESTART_PAUSE_MS = 500;
const MAX_ENDS = 5;
const WINDOW_MS = 60_000;

/** Supervises a running child. */
export function supervise(first: Child, options: SuperviseOptions): Supervised {
  let current = first;
  let stopping = false;
  let pause: NodeJS.Timeout | undefined;
  const ends: number[] = [];
  const stopChild = options.stop ?? ((child: Child) => child.stop());

  const watch = (child: Child): void => {
    void child.exited.then(() => {
      if (stopping) return;
      const now = Date.now();
      ends.push(now);
      while ((ends[0] ?? now) < now - WINDOW_MS) ends.shift();
      if (ends.length >= MAX_ENDS) {
        options.onFailed(child);
        return;
      }
      options.onRestart(child);
      pause = setTimeout(() => void restart(child), RESTART_PAUSE_MS);
    });
  };

  const restart = async (ended: Child): Promise<void> => {
    try {
      current = await options.start();
      if (stopping) await stopChild(current);
      else {
        watch(current);
        options.onRestarted?.(current);
      }
    } catch {
      options.onFailed(ended);
    }
  };

  watch(first);
  return {
    get current() {
      return current;
    },
    async stop() {
      stopping = true;
      clearTimeout(pause);
      await stopChild(current);
    },
  };
}
