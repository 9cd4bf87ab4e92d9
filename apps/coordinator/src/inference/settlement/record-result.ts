/**
 * `recordResult` applies the outcome policy to the provider of an unsuccessful attempt: reports faults, ends its connection after a
 * violation of the protocol, and excludes the provider from retries of the job.
 */
import type { AttemptPlan } from '../attempt/attempt.js';
import type { LatencyTracker } from '../attempt/hedging-policy.js';
import { type ModelRun, providerIdOf } from '../model-run.js';
import type { EngineFailures } from './engine-failures.js';
import { type AttemptResult, blamesClient, ENGINE_FAILED, outcomePolicy } from './outcome-policy.js';
import type { RefusalTracker } from './refusal-tracker.js';

export interface ResultRecorders {
  readonly latencyTracker: LatencyTracker;
  readonly engineFailures: EngineFailures;
  readonly refusals: RefusalTracker;
}

/** Records an unsuccessful result. `elapsedMs` is the duration of the attempt, used for overtaken attempts only. */
export function recordResult(
  { slot: { provider }, role, estimate }: AttemptPlan,
  result: AttemptResult,
  elapsedMs: number,
  run: ModelRun,
  { latencyTracker, engineFailures, refusals }: ResultRecorders,
): void {
  const { slotRequest, clientSignal } = run;
  const providerId = providerIdOf(provider);
  if (result.kind === 'failed' && blamesClient(result)) {
    refusals.refused(run, provider, result.failure);
    return;
  }
  // The client disconnected, so the coordinator cancelled the job, and the provider had nothing to sign.
  if (clientSignal.aborted && result.kind === 'failed' && result.failure.code === 'cancelled') return;
  const { blame, detail } = outcomePolicy(result);
  switch (blame) {
    case 'busy':
    case 'draining':
      provider.report({ kind: blame });
      return;
    case 'none':
      if (result.kind !== 'stopped') excludeUnlessReplaced();
      return;
    case 'slow':
      // The overtaken provider may still be busy with this job when the winner fails.
      slotRequest.exclude.add(providerId);
      if (role === 'hedge') return;
      latencyTracker.observe(slotRequest.model, run.job.params.stream, estimate, elapsedMs);
      provider.report({ kind: 'slow' });
      return;
    case 'failed':
    case 'timed_out':
    case 'unverified':
      excludeUnlessReplaced();
      if (detail === ENGINE_FAILED) engineFailures.failed(run, provider);
      else provider.report({ kind: 'fault', fault: blame, reason: detail });
      return;
    case 'misbehaved':
      excludeUnlessReplaced();
      provider.report({ kind: 'fault', fault: blame, reason: detail });
      provider.report({ kind: 'protocol_broken', reason: detail });
      return;
    case 'client':
      return;
    default:
      blame satisfies never;
  }

  /** Excludes the provider from this job, unless it has reconnected meanwhile. */
  function excludeUnlessReplaced(): void {
    if (!provider.isReplaced) slotRequest.exclude.add(providerId);
  }
}
