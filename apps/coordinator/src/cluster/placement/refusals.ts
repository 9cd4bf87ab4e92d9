/** `reportedRefusal`: after several coordinators have refused a request, chooses the refusal that the client gets. */
import type { NotPlacedReason, Placement } from '../../inference/queue/request-queue.js';

export type Refused = Placement & { readonly kind: 'refused' };

/** Reasons, those most useful to the client first. */
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

/** The refusal with the most useful reason; among equal reasons, the one with the earliest retry. */
export function reportedRefusal(refusals: readonly Refused[]): Refused {
  const rank = ({ reason }: Refused): number => BY_USEFULNESS.indexOf(reason);
  const waitOf = ({ retryAfterMs }: Refused): number => retryAfterMs ?? Number.MAX_VALUE;
  const [first] = [...refusals].sort((a, b) => rank(a) - rank(b) || waitOf(a) - waitOf(b));
  return first ?? refused('none_routable');
}
