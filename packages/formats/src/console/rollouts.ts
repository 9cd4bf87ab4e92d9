/** Admin API: how agent versions spread over the machines, with the comparison of updated machines and the others. */
import { ReleaseVersionSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { body, count, nullable, time } from './schema-parts.js';

export const ROLLOUT_STATES = ['active', 'paused', 'halted', 'complete'] as const;
export type RolloutState = (typeof ROLLOUT_STATES)[number];

/** `missing`: did not come back, or failed the trial. `slower`: decode rate relative to the rate before. */
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

/** Policy of a network whose operator set none. */
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
  /** Machines, or requests for `failed_requests`. */
  count,
  machines: count,
  /** Share from 0 to 1, or relative speed; null: no data. */
  value: nullable(Type.Number({ minimum: 0 })),
});

export const RolloutComparisonSchema = Type.Object({
  measure: Type.Enum([...ROLLOUT_MEASURES]),
  /** Null: all machines. */
  cohort: nullable(Type.Object({ kind: Type.Enum(['chip', 'model']), name: Type.String() })),
  updated: ComparedPartSchema,
  others: ComparedPartSchema,
  /** Probability of such a difference by chance. */
  p: Type.Number({ minimum: 0, maximum: 1 }),
  verdict: Type.Enum(['good', 'concern', 'worse', 'not_enough_data']),
});
export type RolloutComparison = Static<typeof RolloutComparisonSchema>;

export const AdminRolloutSchema = Type.Object({
  version: ReleaseVersionSchema,
  state: Type.Enum([...ROLLOUT_STATES]),
  /** Whether the release file still contains the version. */
  published: Type.Boolean(),
  /** From 1. */
  stage: Type.Integer({ minimum: 1 }),
  stages: Type.Integer({ minimum: 1 }),
  percent: Type.Number(),
  urgent: Type.Boolean(),
  started_at: time,
  stage_started_at: time,
  /** Halted, paused or completed. */
  ended_at: nullable(time),
  reason: nullable(Type.String()),
  /** `coordinator`, `account:<id>` or `key:<id>`. */
  changed_by: Type.String(),
  /** Sentence: missing condition for the next stage; null unless active and checked. */
  waiting_for: nullable(Type.String()),
  checked_at: nullable(time),
  /** Machines that were offered or run the version. `updating`: machines that reserve capacity now, including missing machines. */
  machines: Type.Object({ offered: count, settled: count, updating: count, missing: count }),
  comparisons: Type.Array(RolloutComparisonSchema),
});
export type AdminRollout = Static<typeof AdminRolloutSchema>;

/** `GET /admin/v1/rollouts`: newest version first. */
export const AdminRolloutListSchema = Type.Object({
  rollouts: Type.Array(AdminRolloutSchema),
  policy: RolloutPolicySchema,
  /** Connected machines, by version of the agent. */
  fleet: Type.Object({
    machines: count,
    versions: Type.Array(Type.Object({ version: Type.String(), machines: count, share: Type.Number({ minimum: 0, maximum: 1 }) })),
  }),
});
export type AdminRolloutList = Static<typeof AdminRolloutListSchema>;
