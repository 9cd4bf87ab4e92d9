/**
 * Which idle machines stay while the coordinator goes away: enough for jobs that run and may have to be placed again, of each kind
 * of job. Pure.
 */
import type { ProviderId, TrustLevel } from '@inference/protocol';
import { ineligibleReason } from './eligibility.js';
import type { PoolMember } from './provider-pool.js';

/** Jobs of one kind that run and may have to be placed again. */
export interface DrainDemand {
  readonly model: string;
  readonly providerSerial: string | null;
  readonly providerId?: ProviderId | null;
  readonly trustFloor: TrustLevel | null;
  readonly jobs: number;
}

/** As many as one job is tried on, so that those which failed it leave one over. */
const MIN_PROVIDERS = 3;

/** Some of a model's machines without jobs, with a place for each of these jobs where there are so many. `now` in milliseconds. */
export function providersToRetain<S>(
  { providerSerial, providerId = null, trustFloor, jobs }: DrainDemand,
  members: Iterable<PoolMember<S>>,
  now: number,
): readonly PoolMember<S>[] {
  const demands = { providerSerial, providerId, trustFloor, exclude: new Set<never>() };
  const fit = [...members].filter(({ facts }) => facts.usedSlots === 0 && ineligibleReason(facts, demands, now) === null);
  const spares: PoolMember<S>[] = [];
  let places = 0;
  // One that would have to load the model first comes last.
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
