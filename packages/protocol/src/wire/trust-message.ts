/**
 * Message `trust`: the coordinator reports to a provider its trust level and whether it gets jobs.
 *
 * Each component that is not `ok` has a reason and a remedy. Sent on every change.
 */
import Type, { type Static } from 'typebox';
import { PART_STATES } from '../trust/trust-parts.js';

/** A value of `TRUST_PARTS`, `TRUST_REASONS` or another list of this protocol. Newer coordinators may send unknown codes. */
const Code = Type.String({ pattern: '^[a-z0-9_]{1,64}$' });
const Remedy = Type.String({ maxLength: 512 });

export const TrustPartSchema = Type.Object({
  name: Code,
  state: Type.Enum([...PART_STATES]),
  reason: Type.Optional(Code),
  /** For a rejected certificate chain: the exact rejection. */
  detail: Type.Optional(Code),
  /** Remedy for the owner, present with every reason. */
  remedy: Type.Optional(Remedy),
});

/** `cooling_down` and `quarantined`: no jobs until `until`. `on_probation`: one job at a time, whose outcome decides. */
export const RESTRICTION_STATES = ['cooling_down', 'on_probation', 'quarantined'] as const;

/** Failures of the provider's jobs that cause a restriction. Only `answers_not_verified` causes an immediate quarantine. */
export const RESTRICTION_REASONS = [
  'jobs_failed',
  'jobs_timed_out',
  'connections_lost',
  'protocol_broken',
  'answers_not_verified',
  /** The provider still failed after many cooldowns in a row. */
  'keeps_failing',
] as const;
export type RestrictionReason = (typeof RESTRICTION_REASONS)[number];

const RestrictionSchema = Type.Object({
  /** One of {@link RESTRICTION_STATES}; newer coordinators may add states. */
  state: Code,
  /** One of {@link RESTRICTION_REASONS}; newer coordinators may add reasons. */
  reason: Code,
  /** Start of the restriction, in milliseconds. */
  since: Type.Integer({ minimum: 0 }),
  /** Time after which a single job decides, in milliseconds. */
  until: Type.Integer({ minimum: 0 }),
});

export const TrustSchema = Type.Object({
  type: Type.Literal('trust'),
  trust_level: Type.Union([Type.Literal('none'), Type.Literal('self_signed'), Type.Literal('hardware')]),
  /** Whether the provider may get jobs. */
  routable: Type.Boolean(),
  /** `online`, or the reason why the provider gets no jobs. */
  status: Code,
  status_remedy: Type.Optional(Remedy),
  /** Present while earlier failures restrict the provider. */
  restraint: Type.Optional(RestrictionSchema),
  parts: Type.Array(TrustPartSchema, { maxItems: 32 }),
});
export type TrustMessage = Static<typeof TrustSchema>;
