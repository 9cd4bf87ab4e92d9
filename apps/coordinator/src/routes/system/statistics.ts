/** `GET /v1/stats`, `/v1/leaderboard` and `/v1/network/totals`: public statistics (spec: network stats). */

import { documentedErrors, LeaderboardQuerySchema, TotalsQuerySchema } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import { MAX_AGE_SECONDS, type PublicStatistics } from '../../telemetry/statistics/public-statistics.js';
import { queryErrorExample, queryReader } from '../parameters/query.js';
import { addPublicRoute, sendCached } from '../plugins/public-route.js';
import { jsonResponse } from '../plugins/route-schemas.js';

const readLeaderboardQuery = queryReader(LeaderboardQuerySchema);
const readTotalsQuery = queryReader(TotalsQuerySchema);

export function addStatistics(server: FastifyInstance, statistics: PublicStatistics): void {
  const statsSchema = {
    summary: 'Statistics of the network, at most one minute old.',
    tags: ['Network'],
    response: { 200: jsonResponse('Stats') },
  };
  addPublicRoute(server, '/v1/stats', statsSchema, async (_request, reply) =>
    sendCached(reply, await statistics.stats(), MAX_AGE_SECONDS.stats),
  );
  const leaderboardSchema = {
    summary: 'Providers ranked by what they did in a time window, at most five minutes old.',
    tags: ['Network'],
    // Each parameter has a default.
    querystring: Type.Partial(LeaderboardQuerySchema),
    response: {
      200: jsonResponse('Leaderboard'),
      ...documentedErrors(['invalid_request', 'rate_limit_exceeded'], 'OpenAiError', queryErrorExample(LeaderboardQuerySchema, 'metric')),
    },
  };
  addPublicRoute(server, '/v1/leaderboard', leaderboardSchema, async (request, reply) => {
    const choice = readLeaderboardQuery(request.url);
    return sendCached(reply, await statistics.leaderboard(choice), MAX_AGE_SECONDS.leaderboard);
  });
  const totalsSchema = {
    summary: 'Totals of the network in a time window, at most one minute old.',
    tags: ['Network'],
    querystring: Type.Partial(TotalsQuerySchema),
    response: {
      200: jsonResponse('Totals'),
      ...documentedErrors(['invalid_request', 'rate_limit_exceeded'], 'OpenAiError', queryErrorExample(TotalsQuerySchema, 'window')),
    },
  };
  addPublicRoute(server, '/v1/network/totals', totalsSchema, async (request, reply) => {
    const { window } = readTotalsQuery(request.url);
    return sendCached(reply, await statistics.totals(window), MAX_AGE_SECONDS.totals);
  });
}
