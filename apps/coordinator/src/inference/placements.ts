/** Interfaces of models and slots for inference, implemented by the request queue, the model directory and the cluster's placements. */
import type { ProviderId } from '@inference/protocol';
import { resolveClaimants } from '@inference/scheduler';
import type { ModelDirectory } from '../providers/placement/model-directory.js';
import type { SerialClaimant } from '../providers/placement/placement-service.js';
import type { Placed, Placement, SlotRequest } from './queue/request-queue.js';

/** Models that providers serve now. */
export type NetworkModels = Pick<
  ModelDirectory,
  'serves' | 'returnsAt' | 'isOfType' | 'listedNames' | 'contextLength' | 'vision' | 'imageOffers' | 'onCapacity'
> & {
  /** Reads again which other coordinators serve a model. Absent: always current. */
  refresh?(model: string): Promise<void>;
};

/** Chooses providers and reserves their slots. */
export interface Placements {
  /** A slot on the best provider, at once or within `waitMs`. The caller must start or release the slot. */
  place(request: SlotRequest, waitMs: number, signal: AbortSignal): Placement | Promise<Placement>;
  /** Whether an idle provider could take the request now, while no request waits for the model. */
  hasIdleProvider(request: SlotRequest): boolean;
  /** A slot on an idle provider, at once or not at all: for a second attempt. */
  placeOnIdleProvider(request: SlotRequest): Placed | null | Promise<Placed | null>;
  /** Records how long a job occupied its slot, in milliseconds. */
  served(model: string, ms: number): void;
  /** The provider meant by a serial number; see {@link resolvedProvider}. */
  resolveSerial(serialNumber: string): ResolvedSerial | Promise<ResolvedSerial>;
}

export type ResolvedSerial = ProviderId | 'ambiguous' | null;

/** The claimant with a certificate chain, else the only claimant, else null. `ambiguous`: several claimants without a chain. */
export function resolvedProvider(claimants: readonly SerialClaimant[]): ResolvedSerial {
  const resolved = resolveClaimants(claimants.map((facts) => ({ facts })));
  if (claimants.length > 0 && resolved.length === 0) return 'ambiguous';
  // A machine with several proven keys may serve under each of them.
  return resolved.length === 1 ? (resolved[0]?.facts.providerId ?? null) : null;
}
