/** `/console/v1/machines`: providers of the signed-in account, unlinking, and codes that link more. */
import {
  type ConsoleMachine,
  ConsoleMachineCodeSchema,
  ConsoleMachineListSchema,
  ConsoleUnlinkedMachineSchema,
  RequestError,
} from '@inference/formats';
import type { ProviderId } from '@inference/protocol';
import type { ProviderLinks } from '../../accounts/provider-links.js';
import type { LastSeenRepository } from '../../database/providers/last-seen-repository.js';
import type { MachineCodeRepository } from '../../database/providers/machine-code-repository.js';
import type { OwnedProviderRepository } from '../../database/providers/owned-provider-repository.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { ProviderSnapshot } from '../../providers/provider-snapshot.js';
import { firstSelfSignedGap } from '../../providers/verification/trust-policy.js';
import { isoTime, isoTimeOrNull } from '../parameters/times.js';
import type { ConsoleApi } from '../plugins/console-api.js';
import { lastSeenBody } from './owned-provider.js';

interface OwnedProvidersRoutes {
  readonly ownedProviders: OwnedProviderRepository;
  readonly lastSeen: LastSeenRepository;
  readonly registry: ProviderRegistry;
  readonly codes: MachineCodeRepository;
  readonly links: ProviderLinks;
}

export function addOwnedProviders(api: ConsoleApi, { ownedProviders, lastSeen, registry, codes, links }: OwnedProvidersRoutes): void {
  api.add({ method: 'GET', path: '/machines', response: ConsoleMachineListSchema }, async ({ caller }) => {
    const owned = await ownedProviders.list(caller.account.id);
    const seen = await lastSeen.of(owned.map(({ providerId }) => providerId));
    return {
      data: owned.map(({ providerId, name, linkedAt }): ConsoleMachine => {
        const provider = registry.snapshot(providerId as ProviderId);
        const last = seen.get(providerId);
        return {
          provider_id: providerId,
          name,
          linked_at: isoTimeOrNull(linkedAt),
          last_seen: last === undefined ? null : lastSeenBody(last),
          live: provider === null ? null : liveState(registry, provider),
        };
      }),
    };
  });

  api.add({ method: 'DELETE', path: '/machines/:provider_id', response: ConsoleUnlinkedMachineSchema }, async ({ caller, params }) => {
    const providerId = (params.provider_id ?? '') as ProviderId;
    if (!(await links.unlink(caller.account.id, providerId))) throw new RequestError('not_found', null, 'There is no such machine.');
    return { provider_id: providerId, unlinked: true as const };
  });

  api.add({ method: 'POST', path: '/machine-codes', response: ConsoleMachineCodeSchema, status: 201 }, async ({ caller }) => {
    const { code, expiresAt } = await codes.make(caller.account.id);
    return { code, expires_at: isoTime(expiresAt) };
  });
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
