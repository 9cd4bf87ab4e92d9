/**
 * `followUnlinks` tells connected providers within seconds that another coordinator unlinked them from their account.
 *
 * Notifications only trigger a check. The database decides.
 */

import { isUnclaimed } from '../database/ledger/unclaimed-accounts.js';
import { PeriodicRefresh } from '../database/periodic-refresh.js';
import { OwnedProviderRepository } from '../database/providers/owned-provider-repository.js';
import type { Database } from '../database/tables.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { StartContext } from './start-context.js';

const CHECK_MS = 15_000;

export function followUnlinks(
  { config, options, changeHints, onWriteError, disposal }: StartContext,
  database: Database,
  providers: ProviderRegistry,
): void {
  if (config.cluster === null) return;
  const machines = new OwnedProviderRepository(database);
  const check = async (isSuspected: (providerId: string) => boolean): Promise<void> => {
    const owned = [...providers.owned()].filter(({ providerId }) => isSuspected(providerId));
    if (owned.length === 0) return;
    const owners = await machines.ownersOf(owned.map(({ providerId }) => providerId));
    // The provider may have been linked again during the read.
    const ownersNow = new Map([...providers.owned()].map(({ providerId, accountId }) => [providerId, accountId]));
    for (const { providerId, accountId } of owned) {
      const owner = owners.get(providerId);
      if (owner !== undefined && isUnclaimed(owner) && ownersNow.get(providerId) === accountId) providers.unlinked(providerId);
    }
  };
  changeHints.on('unlinked', (providerIds) => void check((id) => providerIds.has(id)).catch(onWriteError));
  const checking = new PeriodicRefresh({ read: () => check(() => true), everyMs: options.refreshMs ?? CHECK_MS, onError: onWriteError });
  void checking.begin();
  disposal.defer(() => checking.close());
}
