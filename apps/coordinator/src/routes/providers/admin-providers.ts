/**
 * Routes for operators: list providers (`/admin/v1/providers`), tell why providers get no jobs of a model (`/admin/v1/placement`), and end
 * the restriction of a provider after failed jobs (`/admin/v1/providers/{id}/reinstate`).
 *
 * In response members, `hold` and `held` stand for quarantines, and `restrained` for restrictions.
 */
import { type AdminHold, type AdminProvider, type AdminProviderList, AdminProviderListSchema, apiError } from '@inference/formats';
import { ProviderIdSchema } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import Type, { type Static } from 'typebox';
import type { NetworkViews } from '../../cluster/views.js';
import type { Quarantine, QuarantineRepository } from '../../database/providers/quarantine-repository.js';
import type { RequestQueue } from '../../inference/queue/request-queue.js';
import { newestRegistrations } from '../../providers/newest-registrations.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { ProviderSnapshot } from '../../providers/provider-snapshot.js';
import type { ReputationSummary } from '../../providers/reputation/reputation-registry.js';
import { firstSelfSignedGap } from '../../providers/verification/trust-policy.js';
import { shortestWait } from '../inference/model-parts.js';
import { parseProviderId } from '../parameters/query.js';
import { isoTime } from '../parameters/times.js';
import { pathParams } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';

interface AdminProviderListRoutes {
  readonly registry: ProviderRegistry;
  readonly requestQueue: RequestQueue;
  readonly quarantines: Pick<QuarantineRepository, 'of' | 'all'>;
  readonly views: NetworkViews;
}

const PlacementQuerySchema = Type.Object({
  model: Type.Optional(Type.String({ description: 'Model id.' })),
  provider_serial: Type.Optional(Type.String({ description: 'Serial number of the only provider that the request admits.' })),
});

const PlacementSchema = Type.Object({
  model: Type.String(),
  serving: Type.Boolean({ description: 'Whether a provider serves the model.' }),
  slots: Type.Integer({ minimum: 0 }),
  waiting_requests: Type.Integer({ minimum: 0 }),
  expected_wait_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  not_eligible: Type.Array(Type.Object({ provider_id: Type.String(), reason: Type.String() })),
});

const reinstateSchema = {
  params: pathParams('id'),
  response: { 200: Type.Object({ provider_id: Type.String(), reinstated: Type.Literal(true) }) },
};

export function addAdminProviders(server: FastifyInstance, routes: AdminProviderListRoutes): void {
  const { registry, requestQueue, quarantines, views } = routes;
  const readProviders = views.define('admin-providers', { query: Type.Null(), part: AdminProviderListSchema }, () => ({
    providers: [...registry.snapshots()].map((provider) => adminProviderBody(registry, quarantines, provider)),
    restrained: [...registry.reputations.restricted()].map(([provider_id, reputation]) => ({ provider_id, ...reputationBody(reputation) })),
    held: [...quarantines.all].map(([provider_id, quarantine]) => ({ provider_id, ...quarantineBody(quarantine) })),
    connections: registry.connections,
    waiting_requests: requestQueue.waitingOfOwnClients(null),
  }));
  const readPlacement = views.define(
    'admin-placement',
    { query: PlacementQuerySchema, part: PlacementSchema },
    ({ model = '', provider_serial: providerSerial = null }) => {
      const reasons = registry.placement.ineligibleReasons(model, { providerSerial, exclude: new Set(), trustFloor: null });
      return {
        model,
        serving: registry.models.serves(model),
        slots: registry.models.slotCount(model),
        waiting_requests: requestQueue.waitingOfOwnClients(model),
        expected_wait_ms: shortestWait([requestQueue.outlook(model).waitMs]),
        not_eligible: [...reasons].map(([provider_id, reason]) => ({ provider_id, reason })),
      };
    },
  );
  /** Ends the restriction at every coordinator, because each caches reputations. */
  const reinstate = views.defineAction('reinstate', { query: ProviderIdSchema, part: Type.Boolean() }, (providerId) =>
    registry.reputations.reinstate(providerId),
  );
  server.get(
    '/admin/v1/providers',
    { onRequest: server.guards.admin, schema: { response: { 200: AdminProviderListSchema } } },
    async (): Promise<AdminProviderList> => networkProviders(await readProviders(null)),
  );
  server.get<{ Querystring: Static<typeof PlacementQuerySchema> }>(
    '/admin/v1/placement',
    { onRequest: server.guards.admin, schema: { querystring: PlacementQuerySchema, response: { 200: PlacementSchema } } },
    async ({ query }): Promise<Static<typeof PlacementSchema>> => {
      const parts = await readPlacement(query);
      const reasons = new Map(parts.flatMap(({ not_eligible }) => not_eligible.map(({ provider_id, reason }) => [provider_id, reason])));
      return {
        model: query.model ?? '',
        serving: parts.some(({ serving }) => serving),
        slots: parts.reduce((sum, { slots }) => sum + slots, 0),
        waiting_requests: parts.reduce((sum, { waiting_requests }) => sum + waiting_requests, 0),
        expected_wait_ms: shortestWait(parts.map(({ expected_wait_ms }) => expected_wait_ms)),
        not_eligible: [...reasons].map(([provider_id, reason]) => ({ provider_id, reason })),
      };
    },
  );
  server.post<{ Params: { id: string } }>(
    '/admin/v1/providers/:id/reinstate',
    { onRequest: server.guards.admin, schema: reinstateSchema },
    async (request, reply) => {
      const id = parseProviderId(request.params.id);
      if ((await reinstate(id)).some((wasRestricted) => wasRestricted)) return { provider_id: id, reinstated: true };
      sendError(reply, apiError('not_found', { message: 'This provider is not restricted.' }));
      return reply;
    },
  );
}

/** Combines the parts of all coordinators, which share the quarantines. */
function networkProviders(parts: readonly AdminProviderList[]): AdminProviderList {
  const [own, ...others] = parts;
  if (own === undefined) throw new Error('the own part is missing');
  if (others.length === 0) return own;
  const restrained = new Map(parts.flatMap((part) => part.restrained.map((one) => [one.provider_id, one])));
  return {
    providers: [...newestRegistrations(parts.map(({ providers }) => providers))],
    restrained: [...restrained.values()],
    held: own.held,
    connections: parts.reduce((sum, { connections }) => sum + connections, 0),
    waiting_requests: parts.reduce((sum, { waiting_requests }) => sum + waiting_requests, 0),
  };
}

export function adminProviderBody(
  registry: ProviderRegistry,
  quarantines: Pick<QuarantineRepository, 'of'>,
  provider: ProviderSnapshot,
): AdminProvider {
  const { identity, agentName, agentVersion, slots, registeredAt } = provider.registration;
  const { trust, statistics, counters } = provider;
  const { host } = statistics;
  const { reports } = registry.placement;
  const reputation = registry.reputations.summaryOf(identity.providerId);
  return {
    provider_id: identity.providerId,
    session_id: provider.sessionId,
    status: provider.status,
    reason: reputation.detail ?? firstSelfSignedGap(trust),
    trust_level: trust.level,
    trust_parts: trust.parts.map(({ name, state, reason, detail }) => ({ name, state, reason, detail })),
    attested: provider.isAttested,
    simulated: identity.simulated,
    serial_number: identity.attestation.serial_number,
    agent: { name: agentName, version: agentVersion },
    models: provider.models.map((model) => model.id),
    refused_models: provider.refusedModels.map(({ id, reason }) => ({ id, reason })),
    gate: provider.unavailableReason,
    hold: quarantineBodyOrNull(quarantines.of(identity.providerId)),
    placements: statistics.placements,
    share_of_placements: reports.share(identity.providerId, null).share ?? 0,
    speeds: reports.throughput(identity.providerId).map(({ model, speed }) => ({
      model,
      prefill_tps: roundToTenth(speed.prefillTps),
      decode_tps: roundToTenth(speed.decodeTps),
      measured_jobs: speed.samples,
    })),
    answer_lengths: reports.answerLengths(identity.providerId).map(({ model, length }) => ({
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
    running_jobs: provider.usedSlots,
    reported_jobs: statistics.reportedJobs,
    decode_tps: statistics.decodeTps,
    reputation: reputationBody(reputation),
    requests_served: statistics.requestsServed,
    tokens_generated: statistics.tokensGenerated,
    key_expires_at: provider.key?.notAfter ?? null,
    registered_at: registeredAt,
    last_heard_at: provider.lastHeardAt,
    counters: {
      unknown_messages: counters.unknownMessages,
      stray_messages: counters.strayMessages,
      missed_challenges: counters.missedChallenges,
      late_answers: counters.lateAnswers,
    },
  };
}

export function reputationBody({ state, reason, detail, since, until, recentFailures }: ReputationSummary) {
  return { state, reason, detail, since, until, recent_failures: recentFailures };
}

export function quarantineBody({ reason, since, by }: Quarantine): AdminHold {
  return { reason, since: isoTime(since), by };
}

export function quarantineBodyOrNull(quarantine: Quarantine | null): AdminHold | null {
  return quarantine === null ? null : quarantineBody(quarantine);
}

function roundToTenth(rate: number): number {
  return Math.round(rate * 10) / 10;
}
