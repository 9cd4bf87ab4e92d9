/** `GET /v1/models` and `GET /v1/models/{id}`: what is served right now (spec: model list), and for one model how it is asked for. */
import { apiError } from '@inference/formats';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { type Fleet, imageOfferOf, type ServedModel } from '../fleet/fleet.js';
import type { WaitingRoom } from '../inference/waiting-room.js';
import { sendError } from './send-error.js';

const OWNER = 'inference-network';

export function addModels(server: FastifyInstance, guard: onRequestHookHandler, fleet: Fleet, waitingRoom: WaitingRoom): void {
  server.get('/v1/models', { onRequest: guard }, async () => ({ object: 'list', data: fleet.servedModels().map(modelEntry) }));
  // A wildcard, because model ids may contain slashes.
  server.get<{ Params: { '*': string } }>('/v1/models/*', { onRequest: guard }, (request, reply) => {
    const model = fleet.servedModels().find(({ offer }) => offer.id === request.params['*']);
    if (model === undefined) return sendError(reply, apiError('model_not_found', { param: 'model' }));
    const { metadata, ...entry } = modelEntry(model);
    reply.send({ ...entry, metadata: { ...metadata, ...demandOf(model.offer.id, fleet, waitingRoom) } });
  });
}

/** How much the model is asked for at this moment, and what that means for one more request. */
function demandOf(id: string, fleet: Fleet, waitingRoom: WaitingRoom) {
  const { waiting, waitMs } = waitingRoom.outlook(id);
  return {
    slots: fleet.slotsOf(id),
    requests_last_5_minutes: fleet.askedLately(id),
    waiting_requests: waiting,
    expected_wait_ms: waitMs === null ? null : Math.round(waitMs),
  };
}

function modelEntry({ offer, sessions, firstSeenAt }: ServedModel) {
  const levels = sessions.map((session) => session.trust().level);
  return {
    id: offer.id,
    object: 'model',
    created: Math.floor(firstSeenAt / 1000),
    owned_by: OWNER,
    metadata: {
      model_type: offer.model_type,
      quantization: offer.quantization,
      provider_count: sessions.length,
      attested_providers: sessions.filter((session) => session.attested).length,
      trust_level: levels.includes('hardware') ? 'hardware' : 'self_signed',
      display_name: offer.display_name,
      ...(offer.model_type === 'image' ? imageFacts(offer.id, sessions) : {}),
    },
  };
}

/** What some of the machines make, all together. */
function imageFacts(model: string, sessions: ServedModel['sessions']) {
  const offers = sessions.flatMap((session) => imageOfferOf(session, model) ?? []);
  return {
    sizes: [...new Set(offers.flatMap(({ sizes }) => sizes))],
    max_images: Math.max(0, ...offers.map(({ max_images }) => max_images)),
  };
}
