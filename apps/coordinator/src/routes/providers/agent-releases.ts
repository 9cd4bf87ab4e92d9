/**
 * `GET /v1/agent/releases/{version}`: agents download the signed description of a release. `latest` is the newest version that its rollout
 * (the spread over the machines, in stages) offers to the requesting machine.
 */
import { RequestError } from '@inference/formats';
import {
  compareVersions,
  lazyValidator,
  RELEASE_PLATFORMS,
  RELEASE_VERSION_PATTERN,
  type Release,
  ReleaseSchema,
  ReleaseVersionSchema,
  ROLLOUT_HEADER,
  type RolloutNotice,
  rolloutHeader,
} from '@inference/protocol';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { NotOffered } from '../../releases/offer-policy.js';
import type { RolloutService } from '../../releases/rollout-service.js';
import { queryReader } from '../parameters/query.js';
import { addPublicRoute } from '../plugins/public-route.js';
import { pathParams } from '../plugins/route-schemas.js';
import type { AgentReleaseFile } from './agent-release-file.js';
import type { AskingMachine } from './asking-machine.js';

const ReleaseQuerySchema = Type.Object({
  platform: Type.Enum([...RELEASE_PLATFORMS], { description: `one of ${RELEASE_PLATFORMS.join(', ')}` }),
  channel: Type.Optional(Type.Enum(['stable', 'canary'], { description: 'one of stable, canary' })),
  check: Type.Optional(Type.Enum(['yes', 'no'], { description: 'yes or no' })),
  failed: Type.Optional(Type.String({ pattern: RELEASE_VERSION_PATTERN, description: 'three numbers such as 1.2.3' })),
});
const readQuery = queryReader(ReleaseQuerySchema);
const isVersion = lazyValidator(ReleaseVersionSchema);

export interface AgentReleaseRoutes {
  readonly releases: AgentReleaseFile;
  readonly rollouts: RolloutService;
  readonly findMachine: (request: FastifyRequest) => Promise<AskingMachine>;
}

export function addAgentReleases(server: FastifyInstance, { releases, rollouts, findMachine }: AgentReleaseRoutes): void {
  const schema = { params: pathParams('version'), querystring: ReleaseQuerySchema, response: { 200: ReleaseSchema } };
  addPublicRoute(server, '/v1/agent/releases/:version', schema, async (request, reply): Promise<Release> => {
    const { version } = request.params as { version: string };
    const { platform, channel = 'stable', check = 'no', failed } = readQuery(request.url);
    if (platform === undefined)
      throw new RequestError('invalid_request', 'platform', `platform must be one of ${RELEASE_PLATFORMS.join(', ')}.`);
    if (version !== 'latest' && !isVersion().Check(version)) {
      throw new RequestError('invalid_request', 'version', 'version must be latest, or three numbers such as 1.2.3.');
    }
    const all = await releases.all();
    await rollouts.tryBegin(all.map((release) => release.version));
    const offered = all.filter((release) => release.platform === platform);
    const areAllComplete = offered.every((release) => rollouts.rows.get(release.version)?.state === 'complete');
    // If all rollouts are complete, every machine gets the same response.
    reply.header('cache-control', areAllComplete ? 'public, max-age=60' : 'no-store');
    const asking = areAllComplete ? null : await findMachine(request);
    if (failed !== undefined && asking?.machine && asking.isProven) await rollouts.reportFailure(failed, asking.machine);
    const query = { asking, isCanary: channel === 'canary' && asking?.isProven === true, isCheck: check === 'yes' };
    const found =
      version === 'latest' ? await newestFor(rollouts, offered, query) : await requestedRelease(rollouts, offered, { ...query, version });
    if (found.notice !== null) reply.header(ROLLOUT_HEADER, rolloutHeader(found.notice));
    if (found.release === null) throw new RequestError('not_found', null, 'There is no such release.');
    return found.release;
  });
}

interface ReleaseQuery {
  /** Null if the rollouts of all releases for the platform are complete. */
  readonly asking: AskingMachine | null;
  readonly isCanary: boolean;
  readonly isCheck: boolean;
}

interface FoundRelease {
  readonly release: Release | null;
  /** Version that the machine does not get yet (the newest, or the requested one), with the reason. */
  readonly notice: RolloutNotice | null;
}

async function newestFor(rollouts: RolloutService, offered: readonly Release[], query: ReleaseQuery): Promise<FoundRelease> {
  const { asking, isCanary, isCheck } = query;
  const newestFirst = [...offered].sort((a, b) => compareVersions(b.version, a.version));
  let notice: RolloutNotice | null = null;
  for (const release of newestFirst) {
    const why = await whyNot(release);
    if (why === null) return { release, notice };
    notice ??= noticeOf(rollouts, release.version, why);
  }
  // Until a rollout is complete, unknown machines get the newest version with an active rollout. Otherwise a first installation would find
  // none.
  const first = newestFirst.find(({ version }) => rollouts.rows.get(version)?.state === 'active');
  const hasComplete = newestFirst.some(({ version }) => rollouts.rows.get(version)?.state === 'complete');
  return hasComplete || first === undefined || asking?.machine ? { release: null, notice } : { release: first, notice: null };

  function whyNot({ version }: Release): Promise<NotOffered | null> | NotOffered | null {
    if (asking === null) return rollouts.rows.get(version)?.state === 'complete' ? null : 'stopped';
    const { machine, network } = asking;
    if (machine === null) return rollouts.offerUnknown(version, network);
    // A machine that already runs the version takes no part in its rollout.
    if (machine.version !== null && compareVersions(machine.version, version) >= 0) return null;
    return rollouts.offer(version, { machine, isCanary, isCheck, isOwnerRequest: false });
  }
}

/** Finds the version that the owner requested by number. */
async function requestedRelease(
  rollouts: RolloutService,
  offered: readonly Release[],
  { asking, isCanary, isCheck, version }: ReleaseQuery & { readonly version: string },
): Promise<FoundRelease> {
  const release = offered.find((one) => one.version === version) ?? null;
  const state = rollouts.rows.get(version)?.state;
  if (release === null || state === 'complete') return { release, notice: null };
  const why = await whyNot();
  return why === null ? { release, notice: null } : { release: null, notice: noticeOf(rollouts, version, why) };

  async function whyNot(): Promise<NotOffered | null> {
    const machine = asking?.machine ?? null;
    if (state !== 'active') return 'stopped';
    if (machine !== null && machine.version !== null && compareVersions(machine.version, version) >= 0) return null;
    const isOwnerRequest = rollouts.policy.owners_may_update_early;
    if (machine !== null) return rollouts.offer(version, { machine, isCanary, isCheck, isOwnerRequest });
    return isOwnerRequest ? null : rollouts.offerUnknown(version, asking?.network ?? null);
  }
}

function noticeOf(rollouts: RolloutService, version: string, why: NotOffered): RolloutNotice {
  const state = rollouts.rows.get(version)?.state;
  const mayUpdateNow = state === 'active' && rollouts.policy.owners_may_update_early;
  return { version, reason: why === 'stopped' && state === 'halted' ? 'halted' : why === 'stopped' ? 'paused' : why, mayUpdateNow };
}
