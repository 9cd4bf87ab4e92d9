/** Routes for operators without another room: health, metrics and the audit log. */
import type { FastifyInstance, FastifyPluginAsync, onRequestHookHandler } from 'fastify';
import type { OperatorAuditLog } from '../../database/accounts/operator-audit-log.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { RouteAccess } from '../plugins/guards.js';
import { addAuditLogRoutes } from '../plugins/operator-audit-log.js';
import { type AdminHealthRoutes, addAdminHealth } from './health.js';

interface AdminRoutesDeps {
  readonly access: RouteAccess;
  readonly metrics: Metrics;
  readonly auditLog: OperatorAuditLog;
  /** Names of operators, by `account:<id>` and `key:<id>`. */
  readonly namesOf: (operators: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  readonly health: AdminHealthRoutes;
}

export const adminRoutes: FastifyPluginAsync<AdminRoutesDeps> = async (server, { access, metrics, auditLog, namesOf, health }) => {
  addAuditLogRoutes(server, access.adminGuard, { auditLog, namesOf });
  addAdminHealth(server, access.adminGuard, health);
  addMetrics(server, access.adminGuard, metrics);
};

function addMetrics(server: FastifyInstance, adminGuard: onRequestHookHandler, metrics: Metrics): void {
  server.get('/metrics', { onRequest: adminGuard }, async (_request, reply) => {
    const { contentType, text } = await metrics.read();
    reply.header('content-type', contentType).send(text);
    return reply;
  });
}
