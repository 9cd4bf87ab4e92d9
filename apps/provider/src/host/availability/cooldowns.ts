/** Hysteresis of stress (heat, memory, power): stress stops serving at once; serving resumes after a cooldown. Times are monotonic. */

/** Kinds of stress that have a cooldown. */
export interface StressFlags {
  readonly heat: boolean;
  readonly memory: boolean;
  readonly power: boolean;
}

/** Milliseconds by kind of stress: ends on the monotonic clock, where 0 means no cooldown, or durations. */
export type Cooldowns = { readonly [Name in keyof StressFlags]: number };

export const NO_COOLDOWNS: Cooldowns = { heat: 0, memory: 0, power: 0 };

/** Duration in milliseconds. Memory has the longest cooldown, because models that reload use the memory again. */
export const COOLDOWN_MS: Cooldowns = { heat: 120_000, memory: 300_000, power: 60_000 };

/** Cooldowns after a reading at `tick`, in milliseconds of the monotonic clock. */
export function nextCooldowns(before: Cooldowns, stress: StressFlags, tick: number, cooldownMs: Cooldowns = COOLDOWN_MS): Cooldowns {
  const until = (name: keyof StressFlags): number => (stress[name] ? tick + cooldownMs[name] : before[name] > tick ? before[name] : 0);
  return { heat: until('heat'), memory: until('memory'), power: until('power') };
}
