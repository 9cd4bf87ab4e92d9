/**
 * `EngineFailures` decides who is at fault when a provider's engine process fails during a job: the provider or the request.
 *
 * If the engines of several providers fail on a job and none completes it, the request is suspected. The first such jobs of an account
 * still count as faults of the providers, further ones do not.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import { type ModelRun, providerIdOf } from '../model-run.js';
import { ENGINE_FAILED } from './outcome-policy.js';

/** A provider whose engine failed during a job. */
export interface EngineFailure {
  readonly provider: ProviderConnection;
  /** Whether the failure is already recorded as the provider's fault. */
  readonly isRecorded: boolean;
}

/** Suspected jobs per account and window after which a failed engine is recorded at the end of its job, if at all. */
const MAX_COUNTED_JOBS = 3;
const WINDOW_MS = 10 * 60_000;
const MAX_ACCOUNTS = 10_000;

interface JobCount {
  readonly since: number;
  readonly jobs: number;
}

type RunWithFailures = Pick<ModelRun, 'engineFailures' | 'job'>;

export class EngineFailures {
  readonly #now: () => number;
  readonly #counts = new BoundedMap<string, JobCount>(MAX_ACCOUNTS);

  /** `now` returns milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  failed({ engineFailures, job }: RunWithFailures, provider: ProviderConnection): void {
    const isRecorded = this.#countOf(job.accountId).jobs < MAX_COUNTED_JOBS;
    if (isRecorded) reportFault(provider);
    engineFailures.set(providerIdOf(provider), { provider, isRecorded });
  }

  /** Records the end of the run. `wasCompleted` is also true if the client disconnected. */
  runEnded({ engineFailures, job }: RunWithFailures, wasCompleted: boolean): void {
    if (!wasCompleted && engineFailures.size > 1) this.#count(job.accountId);
    else for (const { provider, isRecorded } of engineFailures.values()) if (!isRecorded) reportFault(provider);
    engineFailures.clear();
  }

  #countOf(accountId: string): JobCount {
    const now = this.#now();
    const known = this.#counts.get(accountId);
    return known === undefined || Math.abs(now - known.since) > WINDOW_MS ? { since: now, jobs: 0 } : known;
  }

  #count(accountId: string): void {
    const { since, jobs } = this.#countOf(accountId);
    this.#counts.set(accountId, { since, jobs: jobs + 1 });
  }
}

function reportFault(provider: ProviderConnection): void {
  provider.report({ kind: 'fault', fault: 'failed', reason: ENGINE_FAILED });
}
