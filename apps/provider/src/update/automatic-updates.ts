/** `updateAutomatically` checks for releases every few hours, with jitter, until one is prepared. The caller switches to it. */
import { setTimeout as delay } from 'node:timers/promises';

interface AutomaticOptions {
  /** Read before every check, because the setting may change. */
  readonly isEnabled: () => boolean;
  /** Checks and prepares. Resolves with the prepared version, or null. */
  readonly prepareUpdate: (signal: AbortSignal) => Promise<string | null>;
  readonly onReady: (version: string) => void;
  readonly onProblem: (error: unknown) => void;
  readonly signal: AbortSignal;
  readonly random?: () => number;
  /** Mean interval of checks, in milliseconds. Default: 4 hours. */
  readonly everyMs?: number;
}

const EVERY_MS = 4 * 3_600_000;
/** Maximum delay of the first check, as a fraction of the interval. */
const FIRST_DELAY = 0.1;
/** Fraction by which an interval may be longer or shorter. */
const JITTER = 0.25;

/** Resolves on abort or when a version is prepared. Never rejects. */
export async function updateAutomatically(options: AutomaticOptions): Promise<void> {
  const { isEnabled, prepareUpdate, onReady, onProblem, signal, random = Math.random, everyMs = EVERY_MS } = options;
  try {
    await delay(everyMs * FIRST_DELAY * random(), undefined, { signal, ref: false });
    for (;;) {
      if (isEnabled()) {
        try {
          const ready = await prepareUpdate(signal);
          if (ready !== null) {
            onReady(ready);
            return;
          }
        } catch (error) {
          signal.throwIfAborted();
          onProblem(error);
        }
      }
      await delay(everyMs * (1 + JITTER * (2 * random() - 1)), undefined, { signal, ref: false });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
