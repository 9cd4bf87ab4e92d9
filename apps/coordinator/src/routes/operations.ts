/** For those who run the coordinator: health, and what every provider is doing and why some take no jobs. */
import { apiError, openAiError } from '@inference/formats';
import type { ProviderId } from '@inference/protocol';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import type { Fleet } from '../fleet/fleet.js';
import { PROVIDER_SOCKET_PATH } from '../fleet/provider-gate.js';
import type { OnlineSession } from '../fleet/provider-session.js';
import type { WaitingRoom } from '../inference/waiting-room.js';
import { sendError } from './send-error.js';

export function addOperations(server: FastifyInstance, adminGuard: onRequestHookHandler, fleet: Fleet, waitingRoom: WaitingRoom): void {
  // Clients of the messages format probe the base address with HEAD.
  server.get('/', async () => ({ service: 'inference-gateway' }));
  server.get('/health', async () => ({ status: 'ok' }));
  server.get(PROVIDER_SOCKET_PATH, (_request, reply) => {
    const { body } = openAiError(apiError('invalid_request', { message: 'This address takes WebSocket connections only.' }));
    reply.code(426).headers({ upgrade: 'websocket', 'content-type': 'application/json; charset=utf-8' }).send(body);
  });
  server.get('/admin/v1/providers', { onRequest: adminGuard }, async () => ({
    providers: [...fleet.sessions()].map((session) => providerState(fleet, session)),
    quarantined: [...fleet.quarantines()].map(([provider_id, { reason, since }]) => ({ provider_id, reason, since })),
    connections: fleet.connections,
    waiting_requests: waitingRoom.waiting,
  }));
  server.post<{ Params: { id: ProviderId } }>('/admin/v1/providers/:id/reinstate', { onRequest: adminGuard }, (request, reply) => {
    if (fleet.reinstate(request.params.id)) reply.send({ provider_id: request.params.id, reinstated: true });
    else sendError(reply, apiError('not_found', { message: 'This provider is not quarantined.' }));
  });
}

function providerState(fleet: Fleet, session: OnlineSession) {
  const { identity, agentName, agentVersion, slots, registeredAt } = session.registration;
  const quarantine = fleet.quarantines().get(identity.providerId);
  const trust = session.trust();
  return {
    provider_id: identity.providerId,
    session_id: session.sessionId,
    status: fleet.status(session),
    reason: quarantine?.reason ?? trust.reason,
    trust_level: trust.level,
    attested: session.attested,
    simulated: identity.simulated,
    serial_number: identity.attestation.serial_number,
    agent: { name: agentName, version: agentVersion },
    models: session.models.map((model) => model.id),
    slots,
    running_jobs: session.jobs.used,
    reported_jobs: session.reportedJobs,
    decode_tps: session.decodeTps,
    failures_in_a_row: session.failuresInARow,
    requests_served: session.requestsServed,
    tokens_generated: session.tokensGenerated,
    key_expires_at: session.key?.notAfter ?? null,
    registered_at: registeredAt,
    last_heard_at: session.lastHeardAt,
    counters: {
      unknown_messages: session.counters.unknownMessages,
      stray_messages: session.counters.strayMessages,
      missed_challenges: session.counters.missedChallenges,
    },
  };
}
