/** The owner's pause: what is written down of it, and how it is read back. Pure. */
import type { Pause } from './availability.js';

/** Longest pause with an end, in milliseconds. */
export const LONGEST_PAUSE_MS = 30 * 24 * 3_600_000;

export function pauseText(pause: Pause): string {
  return `${JSON.stringify({ until: pause.until })}\n`;
}

/** Null: there is none, it is over, or the text is damaged in a way that says nothing. `now` in milliseconds since 1970. */
export function readPause(text: string, now: number): Pause | null {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof found !== 'object' || found === null || !('until' in found)) return null;
  const { until } = found;
  if (until === null) return { until };
  return typeof until === 'number' && Number.isSafeInteger(until) && until > now ? { until } : null;
}
