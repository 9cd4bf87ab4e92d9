/**
 * `/admin/v1/rollouts`: lists the rollouts of agent versions (their spread over the machines, in stages), and executes operators' actions
 * such as halt. `/admin/v1/rollout-policy` sets the stages.
 */
import {
  type AdminRollout,
  type AdminRolloutList,
  AdminRolloutListSchema,
  AdminRolloutSchema,
  apiError,
  RequestError,
  ROLLOUT_ACTS,
  type RolloutPolicy,
  RolloutPolicySchema,
  readJsonBody,
  schemaCheck,
} from '@inference/formats';
import { compareVersions } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import type { RolloutRow } from '../../database/rollout-repository.js';
import { rolloutOf } from '../../releases/machine-records.js';
import { stageRules } from '../../releases/rollout.js';
import { readFindings } from '../../releases/rollout-checks.js';
import { RolloutActError, type RolloutService } from '../../releases/rollout-service.js';
import { isoTime } from '../parameters/times.js';
import { operatorOf } from '../plugins/guards.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { pathParams } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';

export interface RolloutRoutes {
  readonly rollouts: RolloutService;
  /** Versions in the file of agent releases. */
  readonly published: () => Promise<readonly string[]>;
}

const MAX_BODY_BYTES = 16_384;
const MAX_REASON = 300;
const MAX_VERSIONS = 50;

const ActSchema = Type.Object(
  {
    reason: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_REASON,
        pattern: '^[^\\p{Cc}\\p{Cs}]*$',
        description: `a text of 1 to ${MAX_REASON} characters`,
      }),
    ),
  },
  { additionalProperties: false, description: 'an object with an optional reason' },
);
const checkAct = schemaCheck(ActSchema);
const checkPolicy = schemaCheck(RolloutPolicySchema);

export function addRollouts(server: FastifyInstance, { rollouts, published }: RolloutRoutes): void {
  const options = { onRequest: server.guards.admin, bodyLimit: MAX_BODY_BYTES };

  server.get(
    '/admin/v1/rollouts',
    { ...options, schema: { response: { 200: AdminRolloutListSchema } } },
    async (): Promise<AdminRolloutList> => {
      const versions = await published();
      await rollouts.begin(versions);
      await rollouts.refresh();
      const rows = [...rollouts.rows.values()].sort((a, b) => compareVersions(b.version, a.version));
      return {
        rollouts: rows.map((row) => rolloutBody(row, rollouts.policy, versions)),
        policy: rollouts.policy,
        fleet: fleetBody(rollouts),
      };
    },
  );

  server.put(
    '/admin/v1/rollout-policy',
    { ...options, schema: { body: RolloutPolicySchema, response: { 200: RolloutPolicySchema } } },
    async (request): Promise<RolloutPolicy> => {
      const policy = checkPolicy(readJsonBody(bytesOf(request)));
      checkStages(policy);
      await rollouts.putPolicy(policy, operatorOf(request));
      return policy;
    },
  );

  for (const act of ROLLOUT_ACTS) {
    server.post<{ Params: { id: string } }>(
      `/admin/v1/rollouts/:id/${act}`,
      { ...options, schema: { params: pathParams('id'), body: ActSchema, response: { 200: AdminRolloutSchema } } },
      async (request, reply) => {
        const bytes = bytesOf(request);
        const { reason = null } = bytes.length === 0 ? {} : checkAct(readJsonBody(bytes));
        try {
          const row = await rollouts.act(request.params.id, act, operatorOf(request), reason);
          if (row !== null) return rolloutBody(row, rollouts.policy, await published());
        } catch (error) {
          if (!(error instanceof RolloutActError)) throw error;
          sendError(reply, apiError('conflict', { message: error.message }));
          return reply;
        }
        sendError(reply, apiError('not_found', { message: 'There is no rollout of this version.' }));
        return reply;
      },
    );
  }
}

/** Requires that percentages grow from stage to stage, and that the last stage reaches 100. Throws RequestError. */
function checkStages({ stages }: RolloutPolicy): void {
  for (const [index, { percent }] of stages.entries()) {
    const before = stages[index - 1]?.percent ?? 0;
    if (percent <= before) {
      throw new RequestError(
        'invalid_request',
        `stages[${index}].percent`,
        `stages[${index}].percent must be above the one before, ${before}.`,
      );
    }
  }
  const last = stages.length - 1;
  if (stages[last]?.percent !== 100) {
    throw new RequestError(
      'invalid_request',
      `stages[${last}].percent`,
      `stages[${last}].percent must be 100, as the last stage is for everyone.`,
    );
  }
}

function rolloutBody(row: RolloutRow, policy: RolloutPolicy, published: readonly string[]): AdminRollout {
  const rollout = rolloutOf(row);
  const findings = readFindings(row);
  const { percent } = stageRules(rollout, policy);
  return {
    version: row.version,
    state: row.state,
    published: published.includes(row.version),
    stage: Math.min(row.stage, policy.stages.length - 1) + 1,
    stages: policy.stages.length,
    percent: row.state === 'complete' ? 100 : percent,
    urgent: rollout.isUrgent,
    started_at: isoTime(row.started_at),
    stage_started_at: isoTime(row.stage_started_at),
    ended_at: row.ended_at === null ? null : isoTime(row.ended_at),
    reason: row.reason,
    changed_by: row.changed_by,
    waiting_for: findings?.waiting_for ?? null,
    checked_at: row.checked_at === null ? null : isoTime(row.checked_at),
    machines: findings?.machines ?? { offered: 0, settled: 0, updating: 0, missing: 0 },
    comparisons: findings?.comparisons ?? [],
  };
}

function fleetBody({ fleet }: RolloutService): AdminRolloutList['fleet'] {
  const versions = [...fleet.machinesByVersion]
    .sort(([, a], [, b]) => b - a)
    .slice(0, MAX_VERSIONS)
    .map(([version, machines]) => ({ version, machines, share: fleet.machines === 0 ? 0 : machines / fleet.machines }));
  return { machines: fleet.machines, versions };
}
