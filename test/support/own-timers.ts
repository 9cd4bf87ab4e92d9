import { onTestFinished } from 'vitest';

const SETTERS = ['setTimeout', 'setInterval'] as const;
const CLEARERS = ['clearTimeout', 'clearInterval'] as const;

/**
 * Counts pending timers that the code of one source file set, directly or through functions that it called. Call after
 * `vi.useFakeTimers`. `vi.getTimerCount` counts timers of the whole process, in which a browser of an earlier test file may still set some.
 *
 * @param source Part of the file's path, such as `/daemon/model-hashes`.
 */
export function timerCountOf(source: string): () => number {
  const pending = new Set<unknown>();
  for (const name of SETTERS) {
    const set = globalThis[name];
    replace(name, ((callback: () => void, delayMs?: number) => {
      if (new Error().stack?.includes(source) !== true) return set(callback, delayMs);
      const timer = set(() => {
        if (name === 'setTimeout') pending.delete(timer);
        callback();
      }, delayMs);
      pending.add(timer);
      return timer;
    }) as typeof set);
  }
  for (const name of CLEARERS) {
    const clear = globalThis[name];
    replace(name, (timer) => {
      pending.delete(timer);
      clear(timer);
    });
  }
  return () => pending.size;
}

/** Replaces a global function until the test ends, or until `vi.useRealTimers` restores it. */
function replace<Name extends 'setTimeout' | 'setInterval' | 'clearTimeout' | 'clearInterval'>(
  name: Name,
  replacement: (typeof globalThis)[Name],
): void {
  const original = globalThis[name];
  // `vi.useRealTimers` recognizes the functions that it must replace by their properties.
  globalThis[name] = Object.assign(replacement, original);
  onTestFinished(() => {
    if (globalThis[name] === replacement) globalThis[name] = original;
  });
}
