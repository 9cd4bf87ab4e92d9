/** For those who run the coordinator: what every provider is doing, and why some take no jobs. */
import { type AdminHold, type AdminProvider, type AdminProviderList, AdminProviderListSchema, apiError } from '@inference/formats';
import type { ProviderId } from '@inference/protocol';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import type { Quarantine, QuarantineRepository } from '../../database/providers/quarantine-repository.js';
import type { RequestQueue } from '../../inference/queue/request-queue.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { ReputationSummary } from '../../providers/reputation/reputation-registry.js';
import type { OnlineSession } from '../../providers/session/provider-session.js';
import { firstSelfSignedGap } from '../../providers/verification/trust-policy.js';
import { isoTime } from '../parameters/pagination.js';
import { pathParams } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';

export interface AdminProviderListRoutes {
  readonly fleet: ProviderRegistry;
  readonly requestQueue: RequestQueue;
  readonly holds: Pick<QuarantineRepository, 'of' | 'all'>;
}

export function addOperations(server: FastifyInstance, adminGuard: onRequestHookHandler, routes: AdminProviderListRoutes): void {
  const { fleet, requestQueue, holds } = routes;
  server.get(
    '/admin/v1/providers',
    { onRequest: adminGuard, schema: { response: { 200: AdminProviderListSchema } } },
    async (): Promise<AdminProviderList> => ({
      providers: [...fleet.sessions()].map((session) => adminProviderBody(fleet, holds, session)),
      restrained: [...fleet.reputations.restricted()].map(([provider_id, standing]) => ({ provider_id, ...reputationBody(standing) })),
      held: [...holds.all].map(([provider_id, hold]) => ({ provider_id, ...quarantineBody(hold) })),
      connections: fleet.connections,
      waiting_requests: requestQueue.waiting,
    }),
  );
  server.get<{ Querystring: { model?: string; provider_serial?: string } }>(
    '/admin/v1/placement',
    { onRequest: adminGuard },
    async ({ query }) => {
      const model = query.model ?? '';
      const reasons = fleet.ineligibleReasons(model, {
        providerSerial: query.provider_serial ?? null,
        exclude: new Set(),
        trustFloor: null,
      });
      const { waiting, waitMs } = requestQueue.outlook(model);
      return {
        model,
        serving: fleet.serves(model),
        slots: fleet.slotCount(model),
        waiting_requests: waiting,
        expected_wait_ms: waitMs === null ? null : Math.round(waitMs),
        not_eligible: [...reasons].map(([provider_id, reason]) => ({ provider_id, reason })),
      };
    },
  );
  server.post<{ Params: { id: ProviderId } }>(
    '/admin/v1/providers/:id/reinstate',
    { onRequest: adminGuard, schema: { params: pathParams('id') } },
    (request, reply) => {
      if (fleet.reputations.reinstate(request.params.id)) reply.send({ provider_id: request.params.id, reinstated: true });
      else sendError(reply, apiError('not_found', { message: 'This provider is not held back.' }));
    },
  );
}

export function adminProviderBody(fleet: ProviderRegistry, holds: Pick<QuarantineRepository, 'of'>, session: OnlineSession): AdminProvider {
  const { identity, agentName, agentVersion, slots, registeredAt } = session.registration;
  const { host } = session.statistics;
  const standing = fleet.reputations.summaryOf(identity.providerId);
  const trust = session.trust();
  return {
    provider_id: identity.providerId,
    session_id: session.sessionId,
    status: fleet.status(session),
    reason: standing.detail ?? firstSelfSignedGap(trust),
    trust_level: trust.level,
    trust_parts: trust.parts.map(({ name, state, reason, detail }) => ({ name, state, reason, detail })),
    attested: session.isAttested,
    simulated: identity.simulated,
    serial_number: identity.attestation.serial_number,
    agent: { name: agentName, version: agentVersion },
    models: session.models.map((model) => model.id),
    refused_models: session.refusedModels.map(({ id, reason }) => ({ id, reason })),
    gate: fleet.unavailableReason(session),
    hold: quarantineBodyOrNull(holds.of(identity.providerId)),
    placements: session.statistics.placements,
    share_of_placements: fleet.placementReports.share(session, null).share ?? 0,
    speeds: fleet.speeds(session).map(({ model, speed }) => ({
      model,
      prefill_tps: roundToTenth(speed.prefillTps),
      decode_tps: roundToTenth(speed.decodeTps),
      measured_jobs: speed.samples,
    })),
    answer_lengths: fleet.answerLengths(session).map(({ model, length }) => ({
      model,
      answers: length.answers,
      hidden_tokens: roundToTenth(length.hiddenTokens),
      completion_tokens: roundToTenth(length.completionTokens),
      median_hidden_tokens: length.medianHiddenTokens === null ? null : roundToTenth(length.medianHiddenTokens),
      median_completion_tokens: length.medianCompletionTokens === null ? null : roundToTenth(length.medianCompletionTokens),
      outlier: length.outlier,
    })),
    host: { thermal: host.thermal, memory_pressure: host.memoryPressure, power: host.power },
    slots,
    running_jobs: session.jobs.used,
    reported_jobs: session.statistics.reportedJobs,
    decode_tps: session.statistics.decodeTps,
    reputation: reputationBody(standing),
    requests_served: session.statistics.requestsServed,
    tokens_generated: session.statistics.tokensGenerated,
    key_expires_at: session.key?.notAfter ?? null,
    registered_at: registeredAt,
    last_heard_at: session.lastHeardAt,
    counters: {
      unknown_messages: session.counters.unknownMessages,
      stray_messages: session.counters.strayMessages,
      missed_challenges: session.counters.missedChallenges,
      late_answers: session.counters.lateAnswers,
    },
  };
}

export function reputationBody({ state, reason, detail, since, until, recentFailures }: ReputationSummary) {
  return { state, reason, detail, since, until, recent_failures: recentFailures };
}

export function quarantineBody({ reason, since, by }: Quarantine): AdminHold {
  return { reason, since: isoTime(since), by };
}

export function quarantineBodyOrNull(hold: Quarantine | null): AdminHold | null {
  return hold === null ? null : quarantineBody(hold);
}

function roundToTenth(rate: number): number {
  return Math.round(rate * 10) / 10;
}
