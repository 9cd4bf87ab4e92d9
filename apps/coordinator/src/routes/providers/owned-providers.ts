/** `/console/v1/machines`: lists the providers of the account that the session acts for, and unlinks a provider from the account. */
import { type ConsoleMachine, ConsoleMachineListSchema, ConsoleUnlinkedMachineSchema } from '@inference/formats';
import { type ProviderId, ProviderIdSchema } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import type { ProviderLinks } from '../../accounts/provider-links.js';
import type { NetworkViews } from '../../cluster/views.js';
import type { LastSeenRepository } from '../../database/providers/last-seen-repository.js';
import type { OwnedProviderRepository } from '../../database/providers/owned-provider-repository.js';
import { newestRegistrations } from '../../providers/newest-registrations.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { ProviderSnapshot } from '../../providers/provider-snapshot.js';
import { firstSelfSignedGap } from '../../providers/verification/trust-policy.js';
import { isoTime, isoTimeOrNull } from '../parameters/times.js';
import type { ConsoleApi } from '../plugins/console-api.js';
import { lastSeenBody, machineNotFound, requireProviderId } from './owned-provider.js';

/** Maximum ids per query to other coordinators, so that the query fits into one message. */
const MAX_IDS_PER_QUERY = 1000;
const ProviderIdsSchema = Type.Array(ProviderIdSchema, { maxItems: MAX_IDS_PER_QUERY });
const LiveMachinesSchema = Type.Array(
  Type.Object({
    provider_id: ProviderIdSchema,
    registered_at: Type.Number(),
    live: ConsoleMachineListSchema.properties.data.items.properties.live,
  }),
  { maxItems: MAX_IDS_PER_QUERY },
);

interface OwnedProvidersRoutes {
  readonly ownedProviders: OwnedProviderRepository;
  readonly lastSeen: LastSeenRepository;
  readonly registry: ProviderRegistry;
  readonly views: NetworkViews;
  readonly links: ProviderLinks;
}

export function addOwnedProviders(api: ConsoleApi, { ownedProviders, lastSeen, registry, views, links }: OwnedProvidersRoutes): void {
  const readLive = views.define('live-machines', { query: ProviderIdsSchema, part: LiveMachinesSchema }, (providerIds) =>
    providerIds.flatMap((providerId) => {
      const provider = registry.snapshot(providerId);
      return provider === null ? [] : liveMachine(registry, provider);
    }),
  );
  /** States of the connected ones of these providers, by id. */
  const liveOf = async (providerIds: readonly ProviderId[]): Promise<ReadonlyMap<string, ConsoleMachine['live']>> => {
    const pages = Array.from({ length: Math.ceil(providerIds.length / MAX_IDS_PER_QUERY) }, (_, page) =>
      readLive(providerIds.slice(page * MAX_IDS_PER_QUERY, (page + 1) * MAX_IDS_PER_QUERY)),
    );
    const live = (await Promise.all(pages)).flatMap(newestRegistrations);
    return new Map(live.map(({ provider_id, live }) => [provider_id, live]));
  };

  api.add({ method: 'GET', path: '/machines', response: ConsoleMachineListSchema }, async ({ caller }) => {
    const owned = await ownedProviders.list(caller.account.id);
    const ids = owned.map(({ providerId }) => providerId as ProviderId);
    const [seen, live] = await Promise.all([lastSeen.of(ids), liveOf(ids)]);
    return {
      data: owned.map(({ providerId, name, linkedAt }): ConsoleMachine => {
        const last = seen.get(providerId);
        return {
          provider_id: providerId,
          name,
          linked_at: isoTimeOrNull(linkedAt),
          last_seen: last === undefined ? null : lastSeenBody(last),
          live: live.get(providerId) ?? null,
        };
      }),
    };
  });

  api.add({ method: 'DELETE', path: '/machines/:provider_id', response: ConsoleUnlinkedMachineSchema }, async ({ caller, params }) => {
    const providerId = requireProviderId(params.provider_id);
    if (!(await links.unlink(caller.account.id, providerId))) throw machineNotFound();
    return { provider_id: providerId, unlinked: true as const };
  });
}

function liveMachine(registry: ProviderRegistry, provider: ProviderSnapshot): Static<typeof LiveMachinesSchema>[number] {
  const { identity, registeredAt } = provider.registration;
  return { provider_id: identity.providerId, registered_at: registeredAt, live: liveState(registry, provider) };
}

function liveState(registry: ProviderRegistry, provider: ProviderSnapshot): ConsoleMachine['live'] {
  const { identity, slots, registeredAt } = provider.registration;
  const { trust, statistics } = provider;
  return {
    status: provider.status,
    reason: registry.reputations.summaryOf(identity.providerId).detail ?? firstSelfSignedGap(trust),
    trust_level: trust.level,
    attested: provider.isAttested,
    simulated: identity.simulated,
    serial_number: identity.attestation.serial_number,
    chip_name: identity.attestation.chip_name,
    models: provider.models.map((model) => model.id),
    slots,
    running_jobs: provider.usedSlots,
    decode_tps: statistics.decodeTps,
    requests_served: statistics.requestsServed,
    tokens_generated: statistics.tokensGenerated,
    connected_at: isoTime(registeredAt),
  };
}
