/** Admin API schemas: rollouts of agent versions, their policy, and the comparison of updated machines with other machines. */
import { ReleaseVersionSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { body, count, nullable, time } from './schema-parts.js';

export const ROLLOUT_STATES = ['active', 'paused', 'halted', 'complete'] as const;
export type RolloutState = (typeof ROLLOUT_STATES)[number];

/**
 * Measures by which updated machines are compared with others. `missing`: the machine did not reconnect, or failed the trial.
 * `slower`: decode rate relative to the rate before the update.
 */
export const ROLLOUT_MEASURES = ['missing', 'trust_lost', 'restricted', 'failed_requests', 'slower'] as const;
export type RolloutMeasure = (typeof ROLLOUT_MEASURES)[number];

export const ROLLOUT_ACTS = ['pause', 'resume', 'halt', 'advance', 'complete', 'expedite'] as const;
export type RolloutAct = (typeof ROLLOUT_ACTS)[number];

const MAX_STAGES = 10;
const MAX_SOAK_MINUTES = 43_200;
const MAX_CANARY_ACCOUNTS = 100;

const percent = Type.Number({ minimum: 0.1, maximum: 100, description: 'a percentage from 0.1 to 100' });

export const RolloutStageSchema = body({
  percent,
  soak_minutes: Type.Integer({
    minimum: 1,
    maximum: MAX_SOAK_MINUTES,
    description: `a whole number of minutes from 1 to ${MAX_SOAK_MINUTES}`,
  }),
  min_machines: Type.Integer({ minimum: 0, maximum: 100_000, description: 'a whole number from 0 to 100000' }),
});

/** `PUT /admin/v1/rollout-policy`. */
export const RolloutPolicySchema = body({
  mode: Type.Enum(['staged', 'immediate'], { description: 'one of staged, immediate' }),
  stages: Type.Array(RolloutStageSchema, { minItems: 1, maxItems: MAX_STAGES, description: `an array of 1 to ${MAX_STAGES} stages` }),
  max_updating_network_percent: percent,
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

const ComparedPartSchema = Type.Object({
  bad: count,
  /** Number of machines; for `failed_requests`, number of requests. */
  count,
  machines: count,
  /** Share from 0 to 1; for `slower`, relative speed. Null: no data. */
  value: nullable(Type.Number({ minimum: 0 })),
});

export const RolloutComparisonSchema = Type.Object({
  measure: Type.Enum([...ROLLOUT_MEASURES]),
  /** Subset of machines that is compared; null: all machines. */
  cohort: nullable(Type.Object({ kind: Type.Enum(['chip', 'model']), name: Type.String() })),
  updated: ComparedPartSchema,
  others: ComparedPartSchema,
  /** P-value: probability of such a difference by chance. */
  p: Type.Number({ minimum: 0, maximum: 1 }),
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
  percent: Type.Number(),
  urgent: Type.Boolean(),
  started_at: time,
  stage_started_at: time,
  /** When the rollout was halted, paused or completed. */
  ended_at: nullable(time),
  reason: nullable(Type.String()),
  /** `coordinator`, `account:<id>` or `key:<id>`. */
  changed_by: Type.String(),
  /** Sentence with the missing condition for the next stage; null unless the rollout is active and was checked. */
  waiting_for: nullable(Type.String()),
  checked_at: nullable(time),
  /**
   * Numbers of machines that were offered the version, or run it. `updating`: machines that count against the limit of concurrent
   * updates, including missing machines.
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
