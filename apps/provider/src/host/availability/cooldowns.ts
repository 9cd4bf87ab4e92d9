/**
 * Keeps a machine from coming and going at an edge: trouble counts at once, and is over only when there was none of it for a while.
 * Pure; times are on a clock that never jumps.
 */

/** Troubles whose end is waited for. */
export interface Troubles {
  readonly heat: boolean;
  readonly memory: boolean;
  readonly power: boolean;
}

/** Until when each of them still counts, in milliseconds of that clock; 0: it does not. */
export type Holds = { readonly [Name in keyof Troubles]: number };

export const NO_HOLDS: Holds = { heat: 0, memory: 0, power: 0 };

/**
 * For how long, in milliseconds. Memory is short for longest: models that come back take it again, and would be sent away again.
 */
export const HOLD_MS: Holds = { heat: 120_000, memory: 300_000, power: 60_000 };

/** After a look at `tick` that found these troubles. */
export function holdsAfter(before: Holds, troubles: Troubles, tick: number, holdMs: Holds = HOLD_MS): Holds {
  const until = (name: keyof Troubles): number => (troubles[name] ? tick + holdMs[name] : before[name] > tick ? before[name] : 0);
  return { heat: until('heat'), memory: until('memory'), power: until('power') };
}
