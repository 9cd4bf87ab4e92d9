/**
 * What a coordinator tells a provider of its own standing, after registration and whenever it changes: the trust level,
 * whether it gets jobs, and for everything that is missing the reason and what its owner can do.
 */
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
  /** What the owner can do; there whenever a reason is. */
  remedy: Type.Optional(Remedy),
});

/** `cooling_down` and `quarantined`: no jobs until a time; `on_probation`: one job at a time, which decides. */
export const RESTRAINT_STATES = ['cooling_down', 'on_probation', 'quarantined'] as const;

/** What a provider's own jobs led to; `answers_not_verified` alone leads to a quarantine at once. */
export const RESTRAINT_REASONS = [
  'jobs_failed',
  'jobs_timed_out',
  'connections_lost',
  'protocol_broken',
  'answers_not_verified',
  /** Many cooldowns in a row changed nothing. */
  'keeps_failing',
] as const;
export type RestraintReason = (typeof RESTRAINT_REASONS)[number];

export const RestraintSchema = Type.Object({
  /** Of {@link RESTRAINT_STATES}; a newer coordinator may know more. */
  state: Code,
  /** Of {@link RESTRAINT_REASONS}; a newer coordinator may know more. */
  reason: Code,
  /** Since when, and when one job decides, in milliseconds. */
  since: Type.Integer({ minimum: 0 }),
  until: Type.Integer({ minimum: 0 }),
});

export const TrustSchema = Type.Object({
  type: Type.Literal('trust'),
  /** With `none` there are no jobs. */
  trust_level: Type.Union([Type.Literal('none'), Type.Literal('self_signed'), Type.Literal('hardware')]),
  /** True only when jobs may come. */
  routable: Type.Boolean(),
  /** `online`, or why no jobs come. */
  status: Code,
  status_remedy: Type.Optional(Remedy),
  /** There while jobs are held back because of what became of earlier ones. */
  restraint: Type.Optional(RestraintSchema),
  parts: Type.Array(TrustPartSchema, { maxItems: 32 }),
});
export type TrustMessage = Static<typeof TrustSchema>;
