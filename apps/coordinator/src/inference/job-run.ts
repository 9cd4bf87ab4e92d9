/** What a job carries through all of its attempts, and what is written down of each of them. */
import type { ProviderId } from '@inference/protocol';
import type { OnlineSession } from '../providers/session/provider-session.js';
import type { Outcome } from './attempt/attempt.js';
import type { Entrant } from './attempt/hedged-request.js';
import type { Delivery } from './delivery/delivery.js';
import type { TraceSpan } from './job-trace.js';
import type { SeatRequest } from './queue/request-queue.js';
import type { JobRequest } from './request/job-request.js';
import type { Bill } from './settlement/bill.js';
import type { Tried, Try } from './settlement/job-end.js';
import { isFailure, judgeFailure } from './settlement/outcome-policy.js';
import type { RefusalOfJob } from './settlement/refusals.js';

/** What stays the same over all attempts of a job. */
export interface Run {
  readonly job: JobRequest;
  readonly delivery: Delivery;
  readonly bill: Bill;
  readonly gone: AbortSignal;
  readonly request: SeatRequest & { readonly exclude: Set<ProviderId> };
  /** No new attempt begins after it, in milliseconds. */
  readonly deadline: number;
  readonly tries: Try[];
  readonly span: TraceSpan;
  readonly attempts: Map<Entrant, TraceSpan>;
  /** Providers whose engine failed at it, and whether that was held against them. */
  readonly engines: Map<ProviderId, boolean>;
  /** Refusals that blame the client, in the order in which they came. */
  readonly refusals: RefusalOfJob[];
  /** Attempts that began. */
  begun: number;
  /** As many as had begun when somebody was waited for last: nobody is waited for twice between two attempts. */
  waitedAfter: number | null;
}

export function triedOn(session: OnlineSession | null, { tries, begun }: Pick<Run, 'tries' | 'begun'>): Tried {
  return { tries, attempts: begun, session };
}

export function providerOf(session: OnlineSession): ProviderId {
  return session.registration.identity.providerId;
}

/** How an attempt ended. */
export function note({ tries, attempts }: Run, entrant: Entrant, outcome: Outcome, elapsedMs: number): void {
  const { slot, role } = entrant;
  const end = endOf(outcome);
  tries.push({ providerId: providerOf(slot.session), role, end, ms: Math.round(elapsedMs) });
  attempts.get(entrant)?.end({ 'inference.outcome': end }, isFailure(outcome) ? end : null);
  attempts.delete(entrant);
}

function endOf(outcome: Outcome): string {
  if (isFailure(outcome)) return judgeFailure(outcome).reason;
  return outcome.kind === 'completed' ? 'answered' : outcome.kind;
}
