/** `/console/v1/machines/{provider_id}`: status and name of a provider of the account that the session acts for, its owner. */
import {
  type ConsoleLastSeen,
  type ConsoleMachineControl,
  ConsoleMachineViewSchema,
  RenameMachineSchema,
  RequestError,
} from '@inference/formats';
import { lazyValidator, type ProviderId, ProviderIdSchema, type ProviderStatusAnswer } from '@inference/protocol';
import type { LastSeen, LastSeenRepository } from '../../database/providers/last-seen-repository.js';
import type { OwnedProvider, OwnedProviderRepository } from '../../database/providers/owned-provider-repository.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { isoTime, isoTimeOrNull } from '../parameters/times.js';
import type { ConsoleApi } from '../plugins/console-api.js';

interface OwnedProviderRoutes {
  readonly registry: ProviderRegistry;
  readonly ownedProviders: OwnedProviderRepository;
  readonly lastSeen: LastSeenRepository;
  /** Status as in `GET /v1/providers/me`. Null while disconnected. */
  readonly statusOf: (providerId: ProviderId) => Promise<ProviderStatusAnswer | null>;
  /** State of remote control from the console. Null while disconnected. */
  readonly controlOf: (providerId: ProviderId) => Promise<ConsoleMachineControl | null>;
}

const isProviderId = lazyValidator(ProviderIdSchema);

export function addOwnedProvider(api: ConsoleApi, { registry, ownedProviders, lastSeen, statusOf, controlOf }: OwnedProviderRoutes): void {
  const viewOf = async ({ providerId, name, linkedAt }: OwnedProvider) => {
    const id = providerId as ProviderId;
    const [seenOf, status, control] = await Promise.all([lastSeen.of([id]), statusOf(id), controlOf(id)]);
    const seen = seenOf.get(id) ?? null;
    const quarantine = registry.reputations.quarantineOf(id);
    return {
      provider_id: providerId,
      name,
      linked_at: isoTimeOrNull(linkedAt),
      status,
      control,
      last_seen: seen === null ? null : lastSeenBody(seen),
      hold: quarantine === null ? null : { reason: quarantine.reason, since: isoTime(quarantine.since) },
    };
  };

  api.add({ method: 'GET', path: '/machines/:provider_id', response: ConsoleMachineViewSchema }, async ({ caller, params }) =>
    viewOf(await findOwned(ownedProviders, caller.account.id, params.provider_id)),
  );

  api.add(
    { method: 'PATCH', path: '/machines/:provider_id', body: RenameMachineSchema, response: ConsoleMachineViewSchema },
    async ({ caller, params, body }) => {
      const { providerId } = await findOwned(ownedProviders, caller.account.id, params.provider_id);
      await ownedProviders.rename(caller.account.id, providerId, body.name);
      return viewOf(await findOwned(ownedProviders, caller.account.id, providerId));
    },
  );
}

/** Throws `not_found` unless the account owns the provider. */
export async function findOwned(
  ownedProviders: OwnedProviderRepository,
  accountId: string,
  providerId: string | undefined,
): Promise<OwnedProvider> {
  const owned = await ownedProviders.find(accountId, requireProviderId(providerId));
  if (owned === null) throw machineNotFound();
  return owned;
}

/** Returns `text` as a provider id. Throws `not_found` for a malformed id. */
export function requireProviderId(text: string | undefined): ProviderId {
  if (isProviderId().Check(text)) return text;
  throw machineNotFound();
}

export function machineNotFound(): RequestError {
  return new RequestError('not_found', null, 'There is no such machine.');
}

export function lastSeenBody({ at, facts }: LastSeen): ConsoleLastSeen {
  return { at: isoTime(at), ...facts };
}
