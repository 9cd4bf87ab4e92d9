/** `adminRoutes` registers routes for operators: health, metrics, incidents, rollouts of agent versions, and the audit log. */
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import Type from 'typebox';
import type { OperatorAuditLog } from '../../database/accounts/operator-audit-log.js';
import type { HealthHistoryRepository } from '../../database/health-history-repository.js';
import type { IncidentRepository } from '../../database/incident-repository.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { addAuditLogRoutes } from '../plugins/operator-audit-log.js';
import { type AdminHealthRoutes, addAdminHealth } from './health.js';
import { addHealthHistory } from './health-history.js';
import { addIncidents } from './incidents.js';
import { addRollouts, type RolloutRoutes } from './rollouts.js';

interface AdminRoutesDeps {
  readonly metrics: Metrics;
  readonly auditLog: OperatorAuditLog;
  /** Names of operators, by `account:<id>` and `key:<id>`. */
  readonly namesOf: (operators: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  readonly health: AdminHealthRoutes;
  readonly healthHistory: HealthHistoryRepository;
  readonly incidents: IncidentRepository;
  readonly rollouts: RolloutRoutes;
}

export const adminRoutes: FastifyPluginAsync<AdminRoutesDeps> = async (server, deps) => {
  const { metrics, auditLog, namesOf, health, healthHistory, incidents, rollouts } = deps;
  addAuditLogRoutes(server, { auditLog, namesOf });
  addAdminHealth(server, health);
  addHealthHistory(server, { history: healthHistory, now: health.now });
  addIncidents(server, { incidents, now: health.now });
  addRollouts(server, rollouts);
  addMetrics(server, metrics);
};

function addMetrics(server: FastifyInstance, metrics: Metrics): void {
  const schema = {
    response: { 200: { content: { 'text/plain': { schema: Type.String({ description: 'Metrics in the text format of Prometheus.' }) } } } },
  };
  server.get('/metrics', { onRequest: server.guards.admin, schema }, async (_request, reply) => {
    const { contentType, text } = await metrics.read();
    reply.header('content-type', contentType).send(text);
    return reply;
  });
}
