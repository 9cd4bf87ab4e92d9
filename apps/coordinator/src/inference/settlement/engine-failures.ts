/**
 * `EngineFailures`: whom to blame for a failed engine. After two providers, the request may be the cause.
 *
 * Beyond a few such jobs per account, providers are blamed only if another one completes the job.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import { providerIdOf, type RunningJob } from '../running-job.js';
import { ENGINE_FAILED } from './outcome-policy.js';

/** An engine that failed at a job. */
export interface EngineFailure {
  readonly provider: ProviderConnection;
  /** Already recorded as the provider's fault. */
  readonly isRecorded: boolean;
}

/** Maximum jobs per account and window that count against providers at once, although no engine completed them. */
const MAX_COUNTED_JOBS = 3;
const WINDOW_MS = 10 * 60_000;
const MAX_ACCOUNTS = 10_000;

interface JobCount {
  readonly since: number;
  readonly jobs: number;
}

type FailedJob = Pick<RunningJob, 'engineFailures' | 'job'>;

export class EngineFailures {
  readonly #now: () => number;
  readonly #counts = new BoundedMap<string, JobCount>(MAX_ACCOUNTS);

  /** `now` in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  failed({ engineFailures, job }: FailedJob, provider: ProviderConnection): void {
    const isRecorded = this.#countOf(job.accountId).jobs < MAX_COUNTED_JOBS;
    if (isRecorded) reportFault(provider);
    engineFailures.set(providerIdOf(provider), { provider, isRecorded });
  }

  /** The job has ended. `wasCompleted`: by another provider. */
  settle({ engineFailures, job }: FailedJob, wasCompleted: boolean): void {
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
