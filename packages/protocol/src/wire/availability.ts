/**
 * Availability messages: a connected provider reports whether it takes jobs.
 *
 * Coordinators with protocol version 1 ignore these messages.
 */
import Type, { type Static } from 'typebox';

/** `leaving`: finishes running jobs, takes no new ones. `away`: no jobs, models unloaded. */
export const AVAILABILITY_STATES = ['serving', 'leaving', 'away'] as const;
export type AvailabilityState = (typeof AVAILABILITY_STATES)[number];

const AWAY_REASONS = [
  /** The owner paused the machine. */
  'paused',
  'outside_schedule',
  /** The machine is in use, and the owner permits jobs only while idle. */
  'owner_active',
  /** The owner permits jobs only while idle, and idleness cannot be detected. */
  'idle_unknown',
  'on_battery',
  'low_battery',
  'too_hot',
  'no_memory',
] as const;
export type AwayReason = (typeof AWAY_REASONS)[number];

/** Also a member of `register`. */
export const ReportedAvailabilitySchema = Type.Object({
  state: Type.Enum([...AVAILABILITY_STATES]),
  /** One of {@link AWAY_REASONS}; newer agents may add reasons. Present unless `serving`. */
  reason: Type.Optional(Type.String({ pattern: '^[a-z0-9_]{1,64}$' })),
  /** Expected return to serving, in milliseconds; absent: unknown. */
  until: Type.Optional(Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 })),
});
export type ReportedAvailability = Static<typeof ReportedAvailabilitySchema>;

export const AvailabilitySchema = Type.Object({ type: Type.Literal('availability'), ...ReportedAvailabilitySchema.properties });
