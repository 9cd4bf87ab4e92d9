/** `providersToRetain`: which idle providers a coordinator that shuts down keeps connected, so that running jobs can be retried. */
import type { ProviderId, TrustLevel } from '@inference/protocol';
import { ineligibleReason } from '../eligibility.js';
import type { PoolMember } from '../pool/provider-groups.js';

/** Running jobs with equal requirements, each of which may need a retry. */
export interface DrainDemand {
  readonly model: string;
  readonly providerSerial: string | null;
  readonly providerId?: ProviderId | null;
  readonly trustFloor: TrustLevel | null;
  readonly jobs: number;
}

/** Equals the maximum attempts of a job, so that every retry finds a different provider. */
const MIN_PROVIDERS = 3;

/** Selects providers until they are `MIN_PROVIDERS` and every job has a slot, as far as idle ones exist. `now` in milliseconds. */
export function providersToRetain<S>(
  { providerSerial, providerId = null, trustFloor, jobs }: DrainDemand,
  members: Iterable<PoolMember<S>>,
  now: number,
): readonly PoolMember<S>[] {
  const constraints = { providerSerial, providerId, trustFloor, exclude: new Set<never>() };
  const fit = [...members].filter(({ facts }) => facts.usedSlots === 0 && ineligibleReason(facts, constraints, now) === null);
  const retained: PoolMember<S>[] = [];
  let slots = 0;
  // Providers that would have to load the model come last.
  for (const ready of [true, false]) {
    for (const member of fit) {
      if ((member.load.kind === 'ready') !== ready) continue;
      if (retained.length >= MIN_PROVIDERS && slots >= jobs) return retained;
      retained.push(member);
      slots += member.facts.slots;
    }
  }
  return retained;
}
