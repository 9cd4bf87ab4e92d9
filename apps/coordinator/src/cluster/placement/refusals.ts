/** `reportedRefusal`: chooses the refusal for the client among the refusals of several owning coordinators. */
import type { NotPlacedReason, Placement } from '../../inference/queue/request-queue.js';

export type Refused = Placement & { readonly kind: 'refused' };

/** Reasons by usefulness to the client, the most useful first. */
const BY_USEFULNESS: readonly NotPlacedReason[] = [
  'timeout',
  'hopeless',
  'queue_full',
  'below_trust_floor',
  'all_failed',
  'no_vision',
  'no_such_serial',
  'none_routable',
  'aborted',
];

export function refused(reason: NotPlacedReason, retryAfterMs: number | null = null): Refused {
  return { kind: 'refused', reason, retryAfterMs };
}

/** The most useful reason, and of equal reasons the earliest retry. */
export function reportedRefusal(refusals: readonly Refused[]): Refused {
  const rank = ({ reason }: Refused): number => BY_USEFULNESS.indexOf(reason);
  // An unknown time of retry comes last.
  const waitOf = ({ retryAfterMs }: Refused): number => retryAfterMs ?? Number.MAX_VALUE;
  const [first] = [...refusals].sort((a, b) => rank(a) - rank(b) || waitOf(a) - waitOf(b));
  return first ?? refused('none_routable');
}
