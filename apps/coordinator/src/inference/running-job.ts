/** What a job carries through all of its attempts, and what is written down of each of them. */
import type { ProviderId } from '@inference/protocol';
import type { ProviderConnection } from '../providers/provider-connection.js';
import type { AttemptOutcome } from './attempt/attempt.js';
import type { AttemptPlan } from './attempt/hedged-request.js';
import type { Delivery } from './delivery/delivery.js';
import type { TraceSpan } from './job-trace.js';
import type { SlotRequest } from './queue/request-queue.js';
import type { JobRequest } from './request/job-request.js';
import type { Bill } from './settlement/bill.js';
import type { AttemptRecord, AttemptSummary } from './settlement/job-outcome.js';
import { isFailure, judgeFailure } from './settlement/outcome-policy.js';
import type { ProviderRefusal } from './settlement/refusal-tracker.js';

/** What stays the same over all attempts of a job. */
export interface RunningJob {
  readonly job: JobRequest;
  readonly delivery: Delivery;
  readonly bill: Bill;
  readonly gone: AbortSignal;
  readonly request: SlotRequest & { readonly exclude: Set<ProviderId> };
  /** No new attempt begins after it, in milliseconds. */
  readonly deadline: number;
  readonly attemptRecords: AttemptRecord[];
  readonly span: TraceSpan;
  readonly attempts: Map<AttemptPlan, TraceSpan>;
  /** Providers whose engine failed at it, and whether that was held against them. */
  readonly engines: Map<ProviderId, boolean>;
  /** RefusalTracker that blame the client, in the order in which they came. */
  readonly refusals: ProviderRefusal[];
  /** Attempts that began. */
  attemptCount: number;
  /** As many as had attemptCount when somebody was waited for last: nobody is waited for twice between two attempts. */
  imageWaitAttempt: number | null;
}

export function attemptSummary(
  provider: ProviderConnection | null,
  { attemptRecords, attemptCount }: Pick<RunningJob, 'attemptRecords' | 'attemptCount'>,
): AttemptSummary {
  return { attemptRecords, attempts: attemptCount, provider };
}

export function providerOf(provider: ProviderConnection): ProviderId {
  return provider.registration.identity.providerId;
}

/** How an attempt ended. */
export function note({ attemptRecords, attempts }: RunningJob, plan: AttemptPlan, outcome: AttemptOutcome, elapsedMs: number): void {
  const { slot, role } = plan;
  const end = endOf(outcome);
  attemptRecords.push({ providerId: providerOf(slot.provider), role, end, ms: Math.round(elapsedMs) });
  attempts.get(plan)?.end({ 'inference.outcome': end }, isFailure(outcome) ? end : null);
  attempts.delete(plan);
}

function endOf(outcome: AttemptOutcome): string {
  if (isFailure(outcome)) return judgeFailure(outcome).reason;
  return outcome.kind === 'completed' ? 'answered' : outcome.kind;
}
