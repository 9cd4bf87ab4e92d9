/** Public routes need no credentials and are readable from all origins (CORS, Fetch standard). `sendCached` sends cached responses. */
import type { FastifyInstance, FastifyReply, FastifySchema, RouteHandlerMethod } from 'fastify';
import type { Cached } from '../../telemetry/statistics/timed-cache.js';
import { PREFLIGHT_SECONDS } from './cors.js';
import { NO_CREDENTIALS } from './route-schemas.js';

const EXPOSED_HEADERS = 'age, retry-after, x-request-id';

/** Adds a route for GET and HEAD, and for the preflight OPTIONS of browsers. Other origins can read its errors, too. */
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

/** Sends a response cached for `maxAgeSeconds`. `Age` makes downstream caches expire at the same time (RFC 9111 section 4.2). */
export function sendCached(reply: FastifyReply, { value, ageSeconds }: Cached<object>, maxAgeSeconds: number): FastifyReply {
  return reply.headers({ 'cache-control': `public, max-age=${maxAgeSeconds}`, age: String(ageSeconds) }).send(value);
}
