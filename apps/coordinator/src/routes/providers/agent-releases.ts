/** `GET /v1/agent/releases/{version}`: agent releases, signed by the operator and verified by agents. */
import { RequestError } from '@inference/formats';
import { RELEASE_PLATFORMS, type Release, ReleaseSchema, ReleaseVersionSchema } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { queryReader } from '../parameters/query.js';
import { addPublicRoute } from '../plugins/public-route.js';
import { pathParams } from '../plugins/route-schemas.js';
import type { AgentReleaseFile } from './agent-release-file.js';

const ReleaseQuerySchema = Type.Object({
  platform: Type.Enum([...RELEASE_PLATFORMS], { description: `one of ${RELEASE_PLATFORMS.join(', ')}` }),
});
const readQuery = queryReader(ReleaseQuerySchema);
const isVersion = Compile(ReleaseVersionSchema);

export function addAgentReleases(server: FastifyInstance, releases: AgentReleaseFile): void {
  const schema = { params: pathParams('version'), querystring: ReleaseQuerySchema, response: { 200: ReleaseSchema } };
  addPublicRoute(server, '/v1/agent/releases/:version', schema, async (request, reply): Promise<Release> => {
    const { version } = request.params as { version: string };
    const { platform } = readQuery(request.url);
    if (platform === undefined)
      throw new RequestError('invalid_request', 'platform', `platform must be one of ${RELEASE_PLATFORMS.join(', ')}.`);
    if (version !== 'latest' && !isVersion.Check(version)) {
      throw new RequestError('invalid_request', 'version', 'version must be latest, or three numbers such as 1.2.3.');
    }
    const found = await releases.find(platform, version === 'latest' ? null : version);
    if (found === null) throw new RequestError('not_found', null, 'There is no such release.');
    reply.header('cache-control', 'public, max-age=60');
    return found;
  });
}
