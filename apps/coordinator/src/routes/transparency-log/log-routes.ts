/**
 * `/e2e/log`: checkpoint (signed size and root hash), tiles (hashes) and entry bundles of the transparency log, by C2SP tlog-tiles, and the
 * key that verifies checkpoints.
 */
import { RequestError } from '@inference/formats';
import { parseTilePath, TILE_WIDTH } from '@inference/protocol';
import type { FastifyPluginAsync } from 'fastify';
import type { TransparencyLog } from '../../transparency-log/transparency-log.js';
import { addPublicRoute } from '../plugins/public-route.js';

const PREFIX = '/e2e/log';
const TEXT = 'text/plain; charset=utf-8';
/** A year: the bytes of a tile never change. */
const IMMUTABLE = 'public, max-age=31536000, immutable';

interface LogRoutesDeps {
  readonly transparencyLog: TransparencyLog;
}

export const logRoutes: FastifyPluginAsync<LogRoutesDeps> = async (server, { transparencyLog }) => {
  addPublicRoute(server, `${PREFIX}/checkpoint`, {}, async (_request, reply) => {
    const checkpoint = await transparencyLog.checkpoint();
    return reply.headers({ 'content-type': TEXT, 'cache-control': 'no-cache' }).send(checkpoint);
  });
  addPublicRoute(server, `${PREFIX}/key`, {}, async (_request, reply) => {
    return reply.headers({ 'content-type': TEXT, 'cache-control': 'no-cache' }).send(`${transparencyLog.verifierKey}\n`);
  });
  addPublicRoute(server, `${PREFIX}/tile/*`, {}, async (request, reply) => {
    const { '*': path } = request.params as { '*': string };
    const id = parseTilePath(`tile/${path}`);
    const bytes = id === null ? null : await transparencyLog.tile(id);
    if (id === null || bytes === null) throw new RequestError('not_found', null, 'The log has no such tile.');
    // A partial tile never changes either, but clients need it only until the log has grown.
    const caching = id.width === TILE_WIDTH ? IMMUTABLE : 'public, max-age=3600, immutable';
    return reply.headers({ 'content-type': 'application/octet-stream', 'cache-control': caching }).send(Buffer.from(bytes));
  });
};
