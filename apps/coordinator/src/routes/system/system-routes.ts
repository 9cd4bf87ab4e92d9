/** `systemRoutes` registers `/`, health, statistics, network status and the OpenAPI document. */
import type { FastifyPluginAsync } from 'fastify';
import type { DatabaseState } from '../../database/connection/database-state.js';
import type { NetworkStatusService } from '../../telemetry/statistics/network-status.js';
import type { PublicStatistics } from '../../telemetry/statistics/public-statistics.js';
import { jsonResponse, NO_CREDENTIALS } from '../plugins/route-schemas.js';
import { acceptsHtml, type ConsoleFiles } from './console-files.js';
import { addHealth } from './health.js';
import { addNetworkStatus } from './network-status.js';
import { addOpenApi } from './openapi.js';
import { addStatistics } from './statistics.js';

interface SystemRoutesDeps {
  readonly statistics: PublicStatistics;
  readonly statusService: NetworkStatusService;
  /** Origin of the console. Null stands for the origin of the request. */
  readonly publicOrigin: string | null;
  readonly isDraining: () => boolean;
  /** Never rejects. */
  readonly databaseState: () => Promise<DatabaseState>;
  /** Null without a built console. */
  readonly consoleFiles: ConsoleFiles | null;
  readonly now: () => number;
}

export const systemRoutes: FastifyPluginAsync<SystemRoutesDeps> = async (server, deps) => {
  const { statistics, statusService, publicOrigin, isDraining, databaseState, consoleFiles, now } = deps;
  // Clients of Anthropic's API probe the base URL with HEAD. People open the URL in a browser.
  const schema = {
    summary: 'Name of the service.',
    tags: ['System'],
    security: NO_CREDENTIALS,
    response: { 200: jsonResponse('Service') },
  };
  server.get('/', { schema }, (request, reply) => {
    if (consoleFiles !== null && acceptsHtml(request)) return consoleFiles.sendPage(reply);
    return reply.header('vary', 'accept').send({ service: 'inference-gateway' });
  });
  addStatistics(server, statistics);
  addNetworkStatus(server, { statusService, publicOrigin });
  addOpenApi(server);
  addHealth(server, { isDraining, database: databaseState, now });
};
