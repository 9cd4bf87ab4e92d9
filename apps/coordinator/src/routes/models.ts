/** `GET /v1/models` and `GET /v1/models/{id}`: what is served right now (spec: model list). */
import { apiError } from '@inference/formats';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import type { Fleet, ServedModel } from '../fleet/fleet.js';
import { sendError } from './send-error.js';

const OWNER = 'inference-network';

export function addModels(server: FastifyInstance, guard: onRequestHookHandler, fleet: Fleet): void {
  server.get('/v1/models', { onRequest: guard }, async () => ({ object: 'list', data: fleet.servedModels().map(modelEntry) }));
  // A wildcard, because model ids may contain slashes.
  server.get<{ Params: { '*': string } }>('/v1/models/*', { onRequest: guard }, (request, reply) => {
    const model = fleet.servedModels().find(({ offer }) => offer.id === request.params['*']);
    if (model === undefined) sendError(reply, apiError('model_not_found', { param: 'model' }));
    else reply.send(modelEntry(model));
  });
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
    },
  };
}
