/**
 * Selects the idle providers that stay during a shutdown: enough for running jobs that may have to be placed again, per kind of
 * job. Pure.
 */
import type { ProviderId, TrustLevel } from '@inference/protocol';
import { ineligibleReason } from './eligibility.js';
import type { PoolMember } from './provider-groups.js';

/** Running jobs of one kind that may have to be placed again. */
export interface DrainDemand {
  readonly model: string;
  readonly providerSerial: string | null;
  readonly providerId?: ProviderId | null;
  readonly trustFloor: TrustLevel | null;
  readonly jobs: number;
}

/** Equals the attempts of one job, so failures leave one provider over. */
const MIN_PROVIDERS = 3;

/** Selects idle providers of a model with a slot for each of these jobs, as far as there are enough. `now` in milliseconds. */
export function providersToRetain<S>(
  { providerSerial, providerId = null, trustFloor, jobs }: DrainDemand,
  members: Iterable<PoolMember<S>>,
  now: number,
): readonly PoolMember<S>[] {
  const demands = { providerSerial, providerId, trustFloor, exclude: new Set<never>() };
  const fit = [...members].filter(({ facts }) => facts.usedSlots === 0 && ineligibleReason(facts, demands, now) === null);
  const spares: PoolMember<S>[] = [];
  let places = 0;
  // Providers that would have to load the model come last.
  for (const ready of [true, false]) {
    for (const member of fit) {
      if ((member.load.kind === 'ready') !== ready) continue;
      if (spares.length >= MIN_PROVIDERS && places >= jobs) return spares;
      spares.push(member);
      places += member.facts.slots;
    }
  }
  return spares;
}
