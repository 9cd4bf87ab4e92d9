/** `GET /metrics` on the coordinator's own port, for those with an admin key. */
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import type { Metrics } from '../../telemetry/metrics.js';

export function addMetrics(server: FastifyInstance, adminGuard: onRequestHookHandler, metrics: Metrics): void {
  server.get('/metrics', { onRequest: adminGuard }, async (_request, reply) => {
    const { contentType, text } = await metrics.read();
    reply.header('content-type', contentType).send(text);
    return reply;
  });
}
