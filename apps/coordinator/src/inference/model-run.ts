/** `ModelRun` is the state of a job while `AttemptRunner` tries one model. `JobRunner` creates one per model and round. */
import type { ProviderId } from '@inference/protocol';
import type { ProviderConnection } from '../providers/provider-connection.js';
import type { AttemptOutcome, AttemptPlan } from './attempt/attempt.js';
import type { Delivery } from './delivery/delivery.js';
import type { TraceSpan } from './job-observer.js';
import type { Placed, SlotRequest } from './queue/request-queue.js';
import type { JobRequest } from './request/job-request.js';
import type { JobRouting } from './request/job-routing.js';
import type { Bill } from './settlement/bill.js';
import type { EngineFailure } from './settlement/engine-failures.js';
import type { AttemptRecord, AttemptSummary } from './settlement/job-outcome.js';
import { isFailure, outcomePolicy } from './settlement/outcome-policy.js';
import type { ProviderRefusal } from './settlement/refusal-tracker.js';

export interface ModelRun {
  /** The request, with the model of this run. */
  readonly job: JobRequest;
  readonly routing: JobRouting | null;
  /** Log code of why the requested model did not answer. Null if this run is for the requested model. */
  readonly fallbackReason: string | null;
  /** Maximum wait in the queue, in milliseconds. Null stands for the default. */
  readonly maxQueueMs: number | null;
  readonly delivery: Delivery;
  readonly bill: Bill;
  /** Aborted when the client disconnects. */
  readonly clientSignal: AbortSignal;
  /** Constraints on the provider. Failed attempts add to the two sets. */
  readonly slotRequest: SlotRequest & { readonly exclude: Set<ProviderId>; readonly excludedOwners: Set<string> };
  /** Providers of `slotRequest.exclude` whose image offer rules the job out; see `mayGenerateImages`. */
  readonly unfitProviders: Set<ProviderId>;
  /** Time after which no attempt begins, by the runner's `now`, in milliseconds. All runs of the job share the deadline. */
  readonly deadline: number;
  readonly span: TraceSpan;
  readonly attemptSpans: Map<AttemptPlan, TraceSpan>;
  /** Ended attempts with all models of the job, in order of their end. */
  readonly attemptRecords: AttemptRecord[];
  readonly engineFailures: Map<ProviderId, EngineFailure>;
  /** Failures for which a provider blames the client's request, oldest first. */
  readonly refusals: ProviderRefusal[];
  /** Number of attempts so far with all models of the job, including attempts that could not start. */
  attemptCount: number;
  /** Provider that refused the client's sealed request, if a second provider was then asked. */
  refusingProvider: ProviderConnection | null;
  /** Slot reserved for the attempt on that second provider. */
  reservedSlot: Placed | null;
  /** `attemptCount` at the last wait for an image provider, so that the job waits at most once between two attempts. */
  attemptCountAtImageWait: number | null;
}

export function providerIdOf(provider: ProviderConnection): ProviderId {
  return provider.registration.identity.providerId;
}

/** Summary of the attempts so far. `provider` made the deciding or last one, if any. */
export function attemptSummary(
  provider: ProviderConnection | null,
  { attemptRecords, attemptCount, job }: Pick<ModelRun, 'attemptRecords' | 'attemptCount' | 'job'>,
): AttemptSummary {
  return { attemptRecords, attemptCount, provider, model: provider === null ? null : job.params.model };
}

/** Records how an attempt ended, for log, metrics and traces. */
export function recordAttempt({ attemptRecords, attemptSpans }: ModelRun, plan: AttemptPlan, outcome: AttemptOutcome, ms: number): void {
  const code = outcomeCode(outcome);
  attemptRecords.push({ providerId: providerIdOf(plan.slot.provider), role: plan.role, outcome: code, ms: Math.round(ms) });
  attemptSpans.get(plan)?.end({ 'inference.outcome': code }, isFailure(outcome) ? code : null);
  attemptSpans.delete(plan);
}

function outcomeCode(outcome: AttemptOutcome): string {
  if (isFailure(outcome)) return outcomePolicy(outcome).reason;
  return outcome.kind === 'completed' ? 'answered' : outcome.kind;
}
