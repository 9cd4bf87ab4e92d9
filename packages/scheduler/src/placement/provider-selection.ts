/** Which providers a request selects, by id, serial number, list of candidates or filter, and why the others may not serve. */
import type { ProviderId } from '@inference/protocol';
import {
  type IneligibleReason,
  ineligibleReason,
  type PlacementConstraints,
  type ProviderSelection,
  passesFilter,
  resolveClaimants,
} from '../eligibility.js';
import type { PoolMember } from '../pool/provider-groups.js';
import type { PoolView } from '../pool/provider-pool.js';

/** Members that the request selects; empty if the request selects no providers. */
export function selectedMembers<S>(
  snapshot: Pick<PoolView<S>, 'member' | 'members' | 'membersBySerial'>,
  selection: ProviderSelection,
): readonly PoolMember<S>[] {
  const { filter = null } = selection;
  const named = namedMembers(snapshot, selection);
  if (filter === null) return named ?? [];
  return [...(named ?? snapshot.members())].filter(({ facts, traits }) => passesFilter(filter, facts, traits));
}

/** Members that the request names by id, serial number or candidates; null: it names none. */
function namedMembers<S>(
  snapshot: Pick<PoolView<S>, 'member' | 'membersBySerial'>,
  { providerSerial, providerId = null, candidates = null }: ProviderSelection,
): readonly PoolMember<S>[] | null {
  if (providerId === null && candidates === null) return providerSerial === null ? null : snapshot.membersBySerial(providerSerial);
  const ids = providerId === null ? (candidates ?? []) : [providerId];
  return [...ids].flatMap((id) => {
    const member = candidates?.has(id) === false ? undefined : snapshot.member(id);
    return member === undefined || (providerSerial ?? member.facts.serialNumber) !== member.facts.serialNumber ? [] : [member];
  });
}

/** Why members may not serve the request at `now`. Key: provider id. Members that may serve are absent. */
export function ineligibleReasons<S>(
  members: Iterable<PoolMember<S>>,
  constraints: PlacementConstraints,
  now: number,
): Map<ProviderId, IneligibleReason> {
  const reasons = new Map<ProviderId, IneligibleReason>();
  const all = [...members];
  const claimants = new Set(resolveClaimants(all.filter(({ facts }) => facts.serialNumber === constraints.providerSerial)));
  for (const member of all) {
    const isOther = constraints.providerSerial !== null && (constraints.providerId ?? null) === null && !claimants.has(member);
    const reason = isOther ? 'other_serial' : ineligibleReason(member.facts, constraints, now);
    if (reason !== null) reasons.set(member.facts.providerId, reason);
  }
  return reasons;
}
