/** `supervise`: restarts a process after unexpected exits, each after a pause. Gives up at `MAX_EXITS` exits per minute, or if a start fails. */
import type { Child } from './child.js';

export interface Supervised {
  readonly current: Child;
  stop(): Promise<void>;
}

export interface SuperviseOptions {
  readonly start: () => Promise<Child>;
  readonly onRestart: (ended: Child) => void;
  readonly onRestarted?: (child: Child) => void;
  readonly stop?: (child: Child) => Promise<void>;
  /** Called when the process exited too often, or could not be restarted. */
  readonly onFailed: (ended: Child) => void;
}

const RESTART_PAUSE_MS = 500;
const MAX_EXITS = 5;
const WINDOW_MS = 60_000;

export function supervise(first: Child, options: SuperviseOptions): Supervised {
  let current = first;
  let stopping = false;
  let pause: NodeJS.Timeout | undefined;
  /** The latest restart; never rejects. */
  let restarting: Promise<void> = Promise.resolve();
  /** Times of unexpected exits within the window, in milliseconds. */
  const exits: number[] = [];
  const stopChild = options.stop ?? ((child: Child) => child.stop());

  const watch = (child: Child): void => {
    void child.exited.then(() => {
      if (stopping) return;
      const now = Date.now();
      exits.push(now);
      while ((exits[0] ?? now) < now - WINDOW_MS) exits.shift();
      if (exits.length >= MAX_EXITS) {
        options.onFailed(child);
        return;
      }
      options.onRestart(child);
      pause = setTimeout(() => (restarting = restart(child)), RESTART_PAUSE_MS);
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
      if (!stopping) options.onFailed(ended);
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
      // `restart` sees `stopping`, and stops a process that starts now.
      await restarting;
      await stopChild(current);
    },
  };
}
