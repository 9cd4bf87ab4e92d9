/** Combines the refusals of several owning coordinators into the one that the client gets. */
import type { NotPlacedReason, Placement } from '../../inference/queue/request-queue.js';

export type Refused = Placement & { readonly kind: 'refused' };

/** Reasons in order of use to the client: the first says most about the next step. */
const ORDER: readonly NotPlacedReason[] = [
  'timeout',
  'hopeless',
  'queue_full',
  'below_trust_floor',
  'all_failed',
  'no_such_serial',
  'none_routable',
  'aborted',
];

export function refused(reason: NotPlacedReason, retryAfterMs: number | null = null): Refused {
  return { kind: 'refused', reason, retryAfterMs };
}

/** The refusal to report when every owning coordinator refuses: by reason, then the earliest retry. */
export function reportedRefusal(refusals: readonly Refused[]): Refused {
  const rank = ({ reason }: Refused): number => ORDER.indexOf(reason);
  // An unknown wait says less than a measured one.
  const waitOf = ({ retryAfterMs }: Refused): number => retryAfterMs ?? Number.MAX_VALUE;
  const [first] = [...refusals].sort((a, b) => rank(a) - rank(b) || waitOf(a) - waitOf(b));
  return first ?? refused('none_routable');
}
