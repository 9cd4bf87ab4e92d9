/**
 * Looks for updates by itself, every few hours and never at the same moment as all others. It makes a release ready beside what
 * runs; whoever created this decides when to switch to it.
 */
import { setTimeout as delay } from 'node:timers/promises';

export interface AutomaticOptions {
  /** Whether the owner wants it now; asked before every look. */
  readonly wanted: () => boolean;
  /** Looks, and makes ready what is there. Resolves with the version that is ready, or null. */
  readonly look: (signal: AbortSignal) => Promise<string | null>;
  readonly onReady: (version: string) => void;
  readonly onProblem: (error: unknown) => void;
  readonly signal: AbortSignal;
  /** From 0 to 1. */
  readonly random?: () => number;
  readonly everyMs?: number;
}

const EVERY_MS = 4 * 3_600_000;
/** The first look comes within this part of the time between two. */
const FIRST_PART = 0.1;
/** Longer or shorter by up to this part. */
const JITTER = 0.25;

/** Resolves when the signal ends it, or a version is ready. Never rejects. */
export async function updateAutomatically(options: AutomaticOptions): Promise<void> {
  const { wanted, look, onReady, onProblem, signal, random = Math.random, everyMs = EVERY_MS } = options;
  try {
    await delay(everyMs * FIRST_PART * random(), undefined, { signal, ref: false });
    for (;;) {
      if (wanted()) {
        try {
          const ready = await look(signal);
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
