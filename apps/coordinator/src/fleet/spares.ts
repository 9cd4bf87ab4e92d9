/**
 * Which idle machines stay while the coordinator goes away: enough for jobs that run and may have to be placed again, of each kind
 * of job. Pure.
 */
import type { ProviderId, TrustLevel } from '@inference/protocol';
import type { Member } from './scheduler/board.js';
import { ineligibility } from './scheduler/gates.js';

/** Jobs of one kind that run and may have to be placed again. */
export interface Wanted {
  readonly model: string;
  readonly providerSerial: string | null;
  readonly providerId?: ProviderId | null;
  readonly trustFloor: TrustLevel | null;
  readonly jobs: number;
}

/** As many as one job is tried on, so that those which failed it leave one over. */
const MIN_MACHINES = 3;

/** Some of a model's machines without jobs, with a place for each of these jobs where there are so many. `now` in milliseconds. */
export function sparesFor<S>(
  { providerSerial, providerId = null, trustFloor, jobs }: Wanted,
  members: Iterable<Member<S>>,
  now: number,
): readonly Member<S>[] {
  const demands = { providerSerial, providerId, trustFloor, exclude: new Set<never>() };
  const fit = [...members].filter(({ facts }) => facts.usedSlots === 0 && ineligibility(facts, demands, now) === null);
  const spares: Member<S>[] = [];
  let places = 0;
  // One that would have to load the model first comes last.
  for (const ready of [true, false]) {
    for (const member of fit) {
      if ((member.load.kind === 'ready') !== ready) continue;
      if (spares.length >= MIN_MACHINES && places >= jobs) return spares;
      spares.push(member);
      places += member.facts.slots;
    }
  }
  return spares;
}
