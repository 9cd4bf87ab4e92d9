/**
 * Whether a provider takes jobs by the will of its owner and the state of its machine. While it is leaving or away it stays connected
 * and answers challenges, and nothing is routed to it. Known from version 2 of the protocol on; older peers ignore it.
 */
import Type, { type Static } from 'typebox';

/** `leaving`: it finishes what it has. `away`: it has nothing, and its models are not in memory. */
export const AVAILABILITY_STATES = ['serving', 'leaving', 'away'] as const;
export type AvailabilityState = (typeof AVAILABILITY_STATES)[number];

export const AWAY_REASONS = [
  /** By the owner's command. */
  'paused',
  'outside_schedule',
  /** Somebody uses the machine, and it serves only while nobody does. */
  'owner_active',
  /** It serves only while nobody uses the machine, which it cannot tell. */
  'idle_unknown',
  'on_battery',
  'low_battery',
  'too_hot',
  'no_memory',
] as const;
export type AwayReason = (typeof AWAY_REASONS)[number];

/** As it stands in `register`, too. */
export const ToldAvailabilitySchema = Type.Object({
  state: Type.Enum([...AVAILABILITY_STATES]),
  /** Of {@link AWAY_REASONS}; a newer agent may know more. There while it is not serving. */
  reason: Type.Optional(Type.String({ pattern: '^[a-z0-9_]{1,64}$' })),
  /** When it expects to serve again, in milliseconds; left out: not known. */
  until: Type.Optional(Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 })),
});
export type ToldAvailability = Static<typeof ToldAvailabilitySchema>;

export const AvailabilitySchema = Type.Object({ type: Type.Literal('availability'), ...ToldAvailabilitySchema.properties });
export type AvailabilityMessage = Static<typeof AvailabilitySchema>;
