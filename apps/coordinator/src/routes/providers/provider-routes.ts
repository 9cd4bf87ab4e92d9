/** `providerRoutes` registers the routes of this folder: for the public, for providers and agents, for owners, and for operators. */
import { apiError, openAiError } from '@inference/formats';
import type { FastifyPluginAsync } from 'fastify';
import type { ProviderLinks } from '../../accounts/provider-links.js';
import type { NetworkViews } from '../../cluster/views.js';
import type { AccountRepository } from '../../database/accounts/account-repository.js';
import type { LastSeenRepository } from '../../database/providers/last-seen-repository.js';
import type { OwnedProviderRepository } from '../../database/providers/owned-provider-repository.js';
import { OwnerCommandRepository } from '../../database/providers/owner-command-repository.js';
import type { QuarantineRepository } from '../../database/providers/quarantine-repository.js';
import type { Database } from '../../database/tables.js';
import type { RequestQueue } from '../../inference/queue/request-queue.js';
import type { AttemptCounters } from '../../limits/attempt-counters.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { PROVIDER_SOCKET_PATH } from '../../providers/session/provider-server.js';
import type { TrustAnchor } from '../../providers/verification/chain/trust-anchor.js';
import type { RolloutService } from '../../releases/rollout-service.js';
import { ConsoleApi } from '../plugins/console-api.js';
import { addAdminProvider } from './admin-provider.js';
import { addAdminProviders } from './admin-providers.js';
import type { AgentReleaseFile } from './agent-release-file.js';
import { addAgentReleases } from './agent-releases.js';
import { askingMachines } from './asking-machine.js';
import { addAttestation } from './attestation.js';
import { addProviderMe, networkDemandReplacer, providerStatuses } from './own-status.js';
import { addOwnedProvider } from './owned-provider.js';
import { addOwnedProviders } from './owned-providers.js';
import { addOwnerCommands, machineControls } from './owner-commands.js';

interface ProviderRoutesDeps {
  readonly providers: ProviderRegistry;
  readonly views: NetworkViews;
  /** Trust anchor of managed-device certificate chains. */
  readonly anchor: TrustAnchor;
  readonly requestQueue: RequestQueue;
  readonly database: Database;
  readonly quarantines: QuarantineRepository;
  readonly lastSeen: LastSeenRepository;
  readonly accounts: AccountRepository;
  readonly ownedProviders: OwnedProviderRepository;
  readonly providerLinks: ProviderLinks;
  readonly attempts: AttemptCounters;
  /** Executes a command at the coordinator that holds the provider's connection. */
  readonly executeOwnerCommand: ProviderRegistry['executeOwnerCommand'];
  readonly releases: AgentReleaseFile;
  readonly rollouts: RolloutService;
  readonly now: () => number;
  /** Reports failures to read earnings, or to store the outcome of an owner command. */
  readonly onFailure: (error: unknown) => void;
}

export const providerRoutes: FastifyPluginAsync<ProviderRoutesDeps> = async (server, deps) => {
  const { providers: registry, requestQueue, database, quarantines, lastSeen, accounts, ownedProviders, views, now, onFailure } = deps;
  const statusSources = { registry, requestQueue, database, now, onFailure };
  const withNetworkDemand = networkDemandReplacer(statusSources, views);
  const statusOf = providerStatuses(statusSources, views, withNetworkDemand);
  addAttestation(server, { registry, views, anchor: deps.anchor });
  addProviderMe(server, statusSources, views, withNetworkDemand);
  addAgentReleases(server, { releases: deps.releases, rollouts: deps.rollouts, findMachine: askingMachines(registry, views) });
  addAdminProviders(server, { registry, requestQueue, quarantines, views });
  addAdminProvider(server, { registry, quarantines, lastSeen, statusOf, ownedProviders, accounts, views });
  const api = new ConsoleApi(server);
  addOwnedProviders(api, { ownedProviders, lastSeen, registry, views, links: deps.providerLinks });
  addOwnedProvider(api, { registry, ownedProviders, lastSeen, statusOf, controlOf: machineControls(registry, views) });
  addOwnerCommands(api, {
    ownedProviders,
    commands: new OwnerCommandRepository({ database, now }),
    attempts: deps.attempts,
    execute: deps.executeOwnerCommand,
    onLogError: onFailure,
  });
  // Reached only without a valid upgrade: the provider server answers WebSocket upgrades.
  server.get(PROVIDER_SOCKET_PATH, (_request, reply) => {
    const { body } = openAiError(apiError('invalid_request', { message: 'This address takes WebSocket connections only.' }));
    reply.code(426).headers({ upgrade: 'websocket', 'content-type': 'application/json; charset=utf-8' }).send(body);
  });
};
