/** Trust level and eligibility of the receiving provider, with reason and remedy per missing property. Sent on every change. */
import Type, { type Static } from 'typebox';
import { PART_STATES } from '../trust/trust-parts.js';

/** Codes are of closed lists (`TRUST_PARTS`, `TRUST_REASONS`); a newer coordinator may know more. */
const Code = Type.String({ pattern: '^[a-z0-9_]{1,64}$' });
const Remedy = Type.String({ maxLength: 512 });

export const TrustPartSchema = Type.Object({
  name: Code,
  state: Type.Enum([...PART_STATES]),
  reason: Type.Optional(Code),
  /** With a refused certificate chain: the exact rejection. */
  detail: Type.Optional(Code),
  /** Remedy for the owner, present with every reason. */
  remedy: Type.Optional(Remedy),
});

/** `cooling_down` and `quarantined`: no jobs until a given time; `on_probation`: one job at a time, whose outcome decides. */
export const RESTRICTION_STATES = ['cooling_down', 'on_probation', 'quarantined'] as const;

/** Outcomes of the provider's own jobs; `answers_not_verified` alone causes an immediate quarantine. */
export const RESTRICTION_REASONS = [
  'jobs_failed',
  'jobs_timed_out',
  'connections_lost',
  'protocol_broken',
  'answers_not_verified',
  /** Many cooldowns in a row changed nothing. */
  'keeps_failing',
] as const;
export type RestrictionReason = (typeof RESTRICTION_REASONS)[number];

const RestrictionSchema = Type.Object({
  /** Of {@link RESTRICTION_STATES}; a newer coordinator may know more. */
  state: Code,
  /** Of {@link RESTRICTION_REASONS}; a newer coordinator may know more. */
  reason: Code,
  /** Start, and time after which a single job decides, in milliseconds. */
  since: Type.Integer({ minimum: 0 }),
  until: Type.Integer({ minimum: 0 }),
});

export const TrustSchema = Type.Object({
  type: Type.Literal('trust'),
  /** `none`: no jobs. */
  trust_level: Type.Union([Type.Literal('none'), Type.Literal('self_signed'), Type.Literal('hardware')]),
  /** True only when jobs may come. */
  routable: Type.Boolean(),
  /** `online`, or why no jobs come. */
  status: Code,
  status_remedy: Type.Optional(Remedy),
  /** Present while jobs are withheld because of earlier outcomes. */
  restraint: Type.Optional(RestrictionSchema),
  parts: Type.Array(TrustPartSchema, { maxItems: 32 }),
});
export type TrustMessage = Static<typeof TrustSchema>;
