/**
 * Admin API schemas: rollouts of agent versions, their policy, and the comparison of updated machines with other machines.
 *
 * A rollout offers a version to more machines in each stage. An updated machine was offered the version, or runs it.
 */
import { ReleaseVersionSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { count, nullable, requestBody, time } from './schema-parts.js';

export const ROLLOUT_STATES = ['active', 'paused', 'halted', 'complete'] as const;
export type RolloutState = (typeof ROLLOUT_STATES)[number];

/**
 * Measures by which updated machines are compared with others.
 *
 * `missing`: the machine disconnected and did not return in time, or its agent rolled a new version back after a trial.
 * `slower`: decode rate relative to the rate at the offer. Other machines are compared from the offer to a similar machine on.
 */
export const ROLLOUT_MEASURES = ['missing', 'trust_lost', 'restricted', 'failed_requests', 'slower'] as const;
export type RolloutMeasure = (typeof ROLLOUT_MEASURES)[number];

/**
 * Actions of operators, `POST /admin/v1/rollouts/{version}/{act}`. `advance` starts the next stage now, and `complete` offers the
 * version to all machines. `expedite` makes the rollout urgent: stages are shorter, and more machines update at once.
 */
export const ROLLOUT_ACTS = ['pause', 'resume', 'halt', 'advance', 'complete', 'expedite'] as const;
export type RolloutAct = (typeof ROLLOUT_ACTS)[number];

const MAX_STAGES = 10;
const MAX_SOAK_MINUTES = 43_200;
const MAX_CANARY_ACCOUNTS = 100;

const percent = Type.Number({ minimum: 0.1, maximum: 100, description: 'a percentage from 0.1 to 100' });

export const RolloutStageSchema = requestBody({
  /** Share of the machines that are offered the version. Small chip families get a larger share. */
  percent,
  /** Minimum duration of the stage. */
  soak_minutes: Type.Integer({
    minimum: 1,
    maximum: MAX_SOAK_MINUTES,
    description: `a whole number of minutes from 1 to ${MAX_SOAK_MINUTES}`,
  }),
  /** Minimum settled machines before the next stage; fewer in a small network or after twice the duration. Unused in the last stage. */
  min_machines: Type.Integer({ minimum: 0, maximum: 100_000, description: 'a whole number from 0 to 100000' }),
});

/** `PUT /admin/v1/rollout-policy`. `immediate` offers each new version to all machines at once. */
export const RolloutPolicySchema = requestBody({
  mode: Type.Enum(['staged', 'immediate'], { description: 'one of staged, immediate' }),
  stages: Type.Array(RolloutStageSchema, { minItems: 1, maxItems: MAX_STAGES, description: `an array of 1 to ${MAX_STAGES} stages` }),
  /** Maximum share of the network's slots that may be updating at once. An urgent rollout may use twice as many. */
  max_updating_network_percent: percent,
  /** The same for the slots of each chip family and of each model. */
  max_updating_cohort_percent: percent,
  owners_may_update_early: Type.Boolean({ description: 'true or false' }),
  canary_accounts: Type.Array(Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9_-]+$' }), {
    maxItems: MAX_CANARY_ACCOUNTS,
    uniqueItems: true,
    description: `an array of up to ${MAX_CANARY_ACCOUNTS} account ids, none twice`,
  }),
});
export type RolloutPolicy = Static<typeof RolloutPolicySchema>;

/** Policy if the operator has not set one. */
export const DEFAULT_ROLLOUT_POLICY: RolloutPolicy = {
  mode: 'staged',
  stages: [
    { percent: 1, soak_minutes: 120, min_machines: 5 },
    { percent: 5, soak_minutes: 240, min_machines: 20 },
    { percent: 25, soak_minutes: 480, min_machines: 50 },
    { percent: 100, soak_minutes: 1440, min_machines: 0 },
  ],
  max_updating_network_percent: 2,
  max_updating_cohort_percent: 5,
  owners_may_update_early: true,
  canary_accounts: [],
};

/** Figures of the updated or the other machines. `count` is the number of machines; for `failed_requests`, of requests. */
const ComparedPartSchema = Type.Object({
  /** How many of `count` are bad. Bad machines of one owner may count once (`compareHealth`). Always 0 for `slower`. */
  bad: count,
  count,
  machines: count,
  /** `bad` / `count`; for `slower`, the mean relative speed. Null: no data. */
  value: nullable(Type.Number({ minimum: 0 })),
});

export const RolloutComparisonSchema = Type.Object({
  measure: Type.Enum([...ROLLOUT_MEASURES]),
  /** Subset of machines that is compared; null: all machines. */
  cohort: nullable(Type.Object({ kind: Type.Enum(['chip', 'model']), name: Type.String() })),
  updated: ComparedPartSchema,
  others: ComparedPartSchema,
  /** P-value: probability of at least this difference by chance. */
  p: Type.Number({ minimum: 0, maximum: 1 }),
  /** `worse` halts an active rollout. `concern` is weaker evidence and delays the next stage. */
  verdict: Type.Enum(['good', 'concern', 'worse', 'not_enough_data']),
});
export type RolloutComparison = Static<typeof RolloutComparisonSchema>;

export const AdminRolloutSchema = Type.Object({
  version: ReleaseVersionSchema,
  state: Type.Enum([...ROLLOUT_STATES]),
  /** Whether the release file still contains the version. */
  published: Type.Boolean(),
  /** Current stage, counted from 1. */
  stage: Type.Integer({ minimum: 1 }),
  stages: Type.Integer({ minimum: 1 }),
  /** Share of the machines in the current stage; 100 if the rollout is complete. */
  percent: Type.Number(),
  /** Set by the action `expedite`. */
  urgent: Type.Boolean(),
  started_at: time,
  stage_started_at: time,
  /** Time of the halt, pause or completion; null while the rollout is active. */
  ended_at: nullable(time),
  /** Why the rollout was halted or paused, if known. */
  reason: nullable(Type.String()),
  /** Who last changed the rollout: `coordinator`, `account:<id>` or `key:<id>`. */
  changed_by: Type.String(),
  /** Sentence about the condition for the next stage, or for completion, that the last check missed; null if none. */
  waiting_for: nullable(Type.String()),
  checked_at: nullable(time),
  /**
   * Numbers at the last check. `offered`: updated machines. `settled`: machines that still run the version ten minutes after the offer.
   *
   * `updating`: machines that count against the maximum shares of concurrent updates, including recently missing ones.
   */
  machines: Type.Object({ offered: count, settled: count, updating: count, missing: count }),
  comparisons: Type.Array(RolloutComparisonSchema),
});
export type AdminRollout = Static<typeof AdminRolloutSchema>;

/** `GET /admin/v1/rollouts`: newest version first. */
export const AdminRolloutListSchema = Type.Object({
  rollouts: Type.Array(AdminRolloutSchema),
  policy: RolloutPolicySchema,
  /** Number of connected machines, by agent version. */
  fleet: Type.Object({
    machines: count,
    versions: Type.Array(Type.Object({ version: Type.String(), machines: count, share: Type.Number({ minimum: 0, maximum: 1 }) })),
  }),
});
export type AdminRolloutList = Static<typeof AdminRolloutListSchema>;
