/**
 * Addresses that anyone may read, pages of other sites included: they take no credentials, so their answers may be shown to
 * every origin (Fetch standard, CORS), whatever the operator says of keyed addresses.
 */
import type { FastifyInstance, FastifyReply, RouteHandlerMethod } from 'fastify';
import type { Cached } from '../../telemetry/statistics/timed-cache.js';

const EXPOSED_HEADERS = 'age, retry-after, x-request-id';
/** Browsers remember the answer to a preflight for a day. */
const PREFLIGHT_SECONDS = '86400';

/** Serves GET, HEAD and the browser's preflight OPTIONS. Errors are readable across origins like answers. */
export function addPublicRoute(server: FastifyInstance, path: string, handler: RouteHandlerMethod): void {
  server.get(
    path,
    {
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

/**
 * Sends an answer that is kept for `maxAgeSeconds`. `max-age` is the life of the kept answer and `Age` how much of it is over,
 * so that a cache on the way drops it when ours does (RFC 9111 section 4.2) and nobody sees one older than that.
 */
export function sendCached(reply: FastifyReply, { value, ageSeconds }: Cached<object>, maxAgeSeconds: number): FastifyReply {
  return reply.headers({ 'cache-control': `public, max-age=${maxAgeSeconds}`, age: String(ageSeconds) }).send(value);
}
