/**
 * Interfaces through which inference finds models and reserves slots.
 *
 * On a single coordinator, `RequestQueue` and `ModelDirectory` implement them. In a cluster, `ClusterPlacements` and `ClusterModels` do.
 */
import type { ProviderId } from '@inference/protocol';
import { resolveClaimants } from '@inference/scheduler';
import type { ModelDirectory } from '../providers/placement/model-directory.js';
import type { SerialClaimant } from '../providers/placement/placement-service.js';
import type { Placed, Placement, SlotRequest } from './queue/request-queue.js';

/** Models that the connected providers of the network serve. */
export type NetworkModels = Pick<
  ModelDirectory,
  'serves' | 'returnsAt' | 'isOfType' | 'listedNames' | 'contextLength' | 'vision' | 'imageOffers' | 'onCapacity'
> & {
  /** Reads again which other coordinators serve a model. Absent on a single coordinator. */
  refresh?(model: string): Promise<void>;
};

export interface Placements {
  /** Reserves a slot on the best provider, waiting up to `waitMs`. The caller must start or release the slot. */
  place(request: SlotRequest, waitMs: number, signal: AbortSignal): Placement | Promise<Placement>;
  /** Whether an idle provider could take the request now. False while requests wait for the model. */
  hasIdleProvider(request: SlotRequest): boolean;
  /** Reserves a slot on an idle provider without waiting, for a hedged attempt. */
  placeOnIdleProvider(request: SlotRequest): Placed | null | Promise<Placed | null>;
  /** Records how long a completed job occupied its slot, in milliseconds. */
  served(model: string, ms: number): void;
  /** See {@link resolvedProvider}. */
  resolveSerial(serialNumber: string): ResolvedSerial | Promise<ResolvedSerial>;
}

export type ResolvedSerial = ProviderId | 'ambiguous' | null;

/**
 * Resolves a device serial number to the provider that proves it with a certificate chain, else to the only provider that claims it.
 *
 * Null if no provider claims it, or several prove it. `ambiguous` if several claim it and none proves it.
 */
export function resolvedProvider(claimants: readonly SerialClaimant[]): ResolvedSerial {
  const resolved = resolveClaimants(claimants.map((facts) => ({ facts })));
  if (claimants.length > 0 && resolved.length === 0) return 'ambiguous';
  // Null if several prove it: these can be one machine with several keys, so placement may use any of them.
  return resolved.length === 1 ? (resolved[0]?.facts.providerId ?? null) : null;
}
