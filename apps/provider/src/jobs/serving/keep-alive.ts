/** `KeepAlive`: the owner's setting for how long an unused model stays in memory. */

export type KeepAlive =
  /** Loaded at the start, and never unloaded for lack of jobs. */
  | { readonly kind: 'always' }
  | { readonly kind: 'idle'; readonly minutes: number }
  /** Unloaded `ON_DEMAND_MS` after the last job. */
  | { readonly kind: 'on_demand' };

export const DEFAULT_KEEP_ALIVE: KeepAlive = { kind: 'idle', minutes: 30 };

/** Not 0, so that the next job of a conversation finds the model loaded. */
const ON_DEMAND_MS = 10_000;

/** Maximum idle time in milliseconds; null if unlimited. */
export function idleLimitMs(keep: KeepAlive): number | null {
  switch (keep.kind) {
    case 'always':
      return null;
    case 'idle':
      return keep.minutes * 60_000;
    case 'on_demand':
      return ON_DEMAND_MS;
    default:
      return keep satisfies never;
  }
}

/** The setting that frees memory sooner. */
export function shorterKeepAlive(one: KeepAlive, other: KeepAlive): KeepAlive {
  const [a, b] = [idleLimitMs(one), idleLimitMs(other)];
  return a === null || (b !== null && b < a) ? other : one;
}

/** Parses `always`, `on_demand` or a whole number of minutes. Null for other text. */
export function parseKeepAlive(text: string): KeepAlive | null {
  if (text === 'always' || text === 'on_demand') return { kind: text };
  const minutes = Number(text);
  return /^\d{1,5}$/.test(text) && minutes > 0 ? { kind: 'idle', minutes } : null;
}

export function keepAliveText(keep: KeepAlive): string {
  return keep.kind === 'idle' ? String(keep.minutes) : keep.kind;
}
