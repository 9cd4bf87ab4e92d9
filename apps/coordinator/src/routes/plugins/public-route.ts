/** `addPublicRoute` adds a route without credentials that scripts of all origins can read (CORS, Fetch standard). */
import type { FastifyInstance, FastifyReply, FastifySchema, RouteHandlerMethod } from 'fastify';
import type { Cached } from '../../telemetry/statistics/timed-cache.js';
import { PREFLIGHT_SECONDS } from './cors.js';
import { NO_CREDENTIALS } from './route-schemas.js';

const EXPOSED_HEADERS = 'age, retry-after, x-request-id';

/** Adds GET, HEAD, and OPTIONS for the preflights of browsers. Scripts of other origins can also read errors. */
export function addPublicRoute(server: FastifyInstance, path: string, schema: FastifySchema, handler: RouteHandlerMethod): void {
  server.get(
    path,
    {
      schema: { ...schema, security: NO_CREDENTIALS },
      onRequest: (_request, reply, done) => {
        reply.headers({ 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED_HEADERS });
        done();
      },
    },
    handler,
  );
  server.options(path, (_request, reply) => {
    reply
      .code(204)
      .headers({
        allow: 'GET, HEAD, OPTIONS',
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, HEAD, OPTIONS',
        'access-control-allow-headers': '*',
        'access-control-max-age': PREFLIGHT_SECONDS,
      })
      .send();
  });
}

/** Sends a value of a cache. `Age` makes HTTP caches expire `maxAgeSeconds` after the value was computed (RFC 9111 section 4.2). */
export function sendCached(reply: FastifyReply, { value, ageSeconds }: Cached<object>, maxAgeSeconds: number): FastifyReply {
  return reply.headers({ 'cache-control': `public, max-age=${maxAgeSeconds}`, age: String(ageSeconds) }).send(value);
}
