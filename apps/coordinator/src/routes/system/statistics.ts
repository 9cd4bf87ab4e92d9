/** `GET /v1/stats`, `/v1/leaderboard` and `/v1/network/totals`: what the network does, for everybody (spec: network stats). */

import { LeaderboardQuerySchema, TotalsQuerySchema } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import { KEPT_SECONDS, type PublicStatistics } from '../../telemetry/statistics/public-statistics.js';
import { queryReader } from '../parameters/query.js';
import { addPublicRoute, sendCached } from '../plugins/public-route.js';

const readLeaderboardQuery = queryReader(LeaderboardQuerySchema);
const readTotalsQuery = queryReader(TotalsQuerySchema);

export function addStatistics(server: FastifyInstance, statistics: PublicStatistics): void {
  addPublicRoute(server, '/v1/stats', async (_request, reply) => sendCached(reply, await statistics.stats(), KEPT_SECONDS.stats));
  addPublicRoute(server, '/v1/leaderboard', async (request, reply) => {
    const choice = readLeaderboardQuery(request.url);
    return sendCached(reply, await statistics.leaderboard(choice), KEPT_SECONDS.leaderboard);
  });
  addPublicRoute(server, '/v1/network/totals', async (request, reply) => {
    const { window } = readTotalsQuery(request.url);
    return sendCached(reply, await statistics.totals(window), KEPT_SECONDS.totals);
  });
}
