/**
 * `EngineFailures` decides whether a failure of a provider's engine process counts as the provider's fault.
 *
 * If the engines of several providers fail on a job and no provider completes the job, the request is suspected. The first suspected jobs
 * of an account still count as faults of the providers, the later ones do not.
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

/** After so many suspected jobs per account and window, a failure is recorded at the end of its job, unless that job is suspected too. */
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

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Called when a provider's engine has failed on the job. */
  failed({ engineFailures, job }: RunWithFailures, provider: ProviderConnection): void {
    const isRecorded = this.#countOf(job.accountId).jobs < MAX_COUNTED_JOBS;
    if (isRecorded) reportFault(provider);
    engineFailures.set(providerIdOf(provider), { provider, isRecorded });
  }

  /** Called at the end of a run. `wasCompleted` is also true if the client disconnected. */
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
