/** `GET /v1/network/status` and `/status.atom`: the public status of components, models and incidents. */
import { documentedErrors, NetworkStatusQuerySchema } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import { type NetworkStatusService, STATUS_MAX_AGE_SECONDS } from '../../telemetry/statistics/network-status.js';
import { queryErrorExample, queryReader } from '../parameters/query.js';
import { addPublicRoute } from '../plugins/public-route.js';
import { originOf } from '../plugins/request-origin.js';
import { jsonResponse } from '../plugins/route-schemas.js';
import { atomFeed } from './atom-feed.js';

const FEED_DAYS = 90;

interface NetworkStatusRoutes {
  readonly statusService: NetworkStatusService;
  /** Origin of the console. Null stands for the origin of the request. */
  readonly publicOrigin: string | null;
}

const readQuery = queryReader(NetworkStatusQuerySchema);

export function addNetworkStatus(server: FastifyInstance, { statusService, publicOrigin }: NetworkStatusRoutes): void {
  const schema = {
    summary: 'State of the components and models, daily uptime and incidents, at most 30 seconds old.',
    tags: ['Network'],
    // Each parameter has a default.
    querystring: Type.Partial(NetworkStatusQuerySchema),
    response: {
      200: jsonResponse('NetworkStatus'),
      ...documentedErrors(['invalid_request', 'rate_limit_exceeded'], 'OpenAiError', queryErrorExample(NetworkStatusQuerySchema, 'days')),
    },
  };
  addPublicRoute(server, '/v1/network/status', schema, async (request, reply) => {
    const { value, ageSeconds } = await statusService.read(readQuery(request.url));
    return reply.headers(cacheHeaders(ageSeconds)).send(value);
  });
  const feedSchema = {
    summary: 'Incidents and maintenance of the last 90 days as an Atom feed.',
    tags: ['Network'],
    response: {
      200: { description: 'The feed.', content: { 'application/atom+xml': { schema: Type.String() } } },
      ...documentedErrors(['rate_limit_exceeded'], 'OpenAiError'),
    },
  };
  addPublicRoute(server, '/status.atom', feedSchema, async (request, reply) => {
    const { value, ageSeconds } = await statusService.read({ days: FEED_DAYS, limit: 0, search: '' });
    const text = atomFeed(value, originOf(request, publicOrigin));
    return reply.headers({ ...cacheHeaders(ageSeconds), 'content-type': 'application/atom+xml; charset=utf-8' }).send(text);
  });
}

function cacheHeaders(ageSeconds: number): Record<string, string> {
  return { 'cache-control': `public, max-age=${STATUS_MAX_AGE_SECONDS}`, age: String(ageSeconds) };
}
