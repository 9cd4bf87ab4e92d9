/**
 * Keeps a machine from coming and going at an edge: trouble counts at once, and is over only when there was none of it for a while.
 * Pure; times are on a clock that never jumps.
 */

/** StressFlags whose end is waited for. */
export interface StressFlags {
  readonly heat: boolean;
  readonly memory: boolean;
  readonly power: boolean;
}

/** Until when each of them still counts, in milliseconds of that clock; 0: it does not. */
export type Cooldowns = { readonly [Name in keyof StressFlags]: number };

export const NO_COOLDOWNS: Cooldowns = { heat: 0, memory: 0, power: 0 };

/**
 * For how long, in milliseconds. Memory is short for longest: models that come back take it again, and would be sent away again.
 */
export const COOLDOWN_MS: Cooldowns = { heat: 120_000, memory: 300_000, power: 60_000 };

/** After a look at `tick` that found these troubles. */
export function nextCooldowns(before: Cooldowns, troubles: StressFlags, tick: number, holdMs: Cooldowns = COOLDOWN_MS): Cooldowns {
  const until = (name: keyof StressFlags): number => (troubles[name] ? tick + holdMs[name] : before[name] > tick ? before[name] : 0);
  return { heat: until('heat'), memory: until('memory'), power: until('power') };
}
