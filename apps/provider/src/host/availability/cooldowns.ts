/** Cooldowns after stress (heat, little memory, battery power): stress stops serving at once; serving resumes some time after its end. */

export interface StressFlags {
  readonly heat: boolean;
  readonly memory: boolean;
  readonly power: boolean;
}

/** Milliseconds: durations, or ends on the monotonic clock, where 0 means no cooldown. */
export type Cooldowns = { readonly [Name in keyof StressFlags]: number };

export const NO_COOLDOWNS: Cooldowns = { heat: 0, memory: 0, power: 0 };

/** Memory has the longest, because models that reload use the memory again. */
export const COOLDOWN_MS: Cooldowns = { heat: 120_000, memory: 300_000, power: 60_000 };

/** Ends of the cooldowns after a reading at `now`, on the monotonic clock. */
export function nextCooldowns(before: Cooldowns, stress: StressFlags, now: number, cooldownMs: Cooldowns = COOLDOWN_MS): Cooldowns {
  const until = (name: keyof StressFlags): number => (stress[name] ? now + cooldownMs[name] : before[name] > now ? before[name] : 0);
  return { heat: until('heat'), memory: until('memory'), power: until('power') };
}
