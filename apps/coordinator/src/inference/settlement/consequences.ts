/** What the outcome of an attempt means for its provider: its reputation, its provider, and whether it may have the same job again. */
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { AttemptOutcome } from '../attempt/attempt.js';
import type { AttemptPlan } from '../attempt/hedged-request.js';
import type { LatencyTracker } from '../attempt/latency-tracker.js';
import { providerOf, type RunningJob } from '../running-job.js';
import { ENGINE_FAILED, type EngineFailures } from './engine-failures.js';
import { isClientsFault, judgeFailure } from './outcome-policy.js';
import type { RefusalTracker } from './refusal-tracker.js';

/** Who keeps what is held against providers. */
export interface OutcomeRecorders {
  readonly fleet: ProviderRegistry;
  readonly latencyTracker: LatencyTracker;
  readonly engineFailures: EngineFailures;
  readonly refusals: RefusalTracker;
}

/** `elapsedMs`: how long the attempt has taken. */
export function recordOutcome(
  { slot, role, estimate }: AttemptPlan,
  outcome: AttemptOutcome,
  elapsedMs: number,
  run: RunningJob,
  { fleet, latencyTracker, engineFailures, refusals }: OutcomeRecorders,
): void {
  const { provider } = slot;
  const providerId = providerOf(provider);
  switch (outcome.kind) {
    case 'completed':
    case 'stopped':
      return;
    case 'overtaken':
      // It may still be at work on this very job when the winner fails.
      run.request.exclude.add(providerId);
      if (role === 'hedge') return;
      latencyTracker.observe(run.request.model, run.job.facts.stream, estimate, elapsedMs);
      fleet.reputations.recordSlowAnswer(providerId);
      return;
    case 'failed':
    case 'lost':
    case 'timeout':
    case 'unsent':
    case 'violated':
    case 'unsealable': {
      if (isClientsFault(outcome)) {
        refusals.refused(run, provider, outcome.failure);
        return;
      }
      const { consequence, reason } = judgeFailure(outcome);
      // A provider that was told to stop and had nothing to sign did as it should.
      if (run.gone.aborted && outcome.kind === 'failed' && outcome.failure.code === 'cancelled') return;
      // Where it has connected anew, it may have the job again.
      const mayRetrySameProvider = consequence === 'hold_off' || consequence === 'drain' || provider.isReplaced;
      if (!mayRetrySameProvider) run.request.exclude.add(providerId);
      switch (consequence) {
        case 'none':
          return;
        case 'hold_off':
          provider.report({ kind: 'busy' });
          return;
        case 'drain':
          provider.report({ kind: 'draining' });
          return;
        case 'failed':
        case 'timed_out':
          if (reason === ENGINE_FAILED) engineFailures.failed(run, providerId);
          else fleet.reputations.recordFault(providerId, consequence, reason);
          return;
        case 'misbehaved':
          fleet.reputations.recordFault(providerId, consequence, reason);
          provider.report({ kind: 'protocol_broken', reason });
          return;
        default:
          consequence satisfies never;
      }
    }
  }
}
