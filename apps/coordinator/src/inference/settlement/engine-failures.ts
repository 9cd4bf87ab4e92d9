/**
 * Whose fault failed engines are. Mostly the machine's, and it is held against it at once. But where a job ended the engines of two machines
 * and no third one did it, it may be the request that no engine bears, and then whoever sends it again and again would put one machine after
 * the other out of work. So a few such jobs of an account count (all engines may really be broken); of those that follow, nothing is
 * held against a machine until another one has done the job.
 */
import type { JobFailureCode, ProviderId } from '@inference/protocol';
import { BoundedMap } from '../../limits/bounded-map.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { RunningJob } from '../running-job.js';

export const ENGINE_FAILED = 'engine_failed' satisfies JobFailureCode;

/** Jobs of an account that no engine did and that count against the machines at once, in a window. */
const MAX_COUNTED = 3;
const WINDOW_MS = 10 * 60_000;
const MAX_ACCOUNTS = 10_000;

interface Counted {
  readonly since: number;
  readonly jobs: number;
}

export interface EngineFailuresOptions {
  readonly fleet: Pick<ProviderRegistry, 'reputations'>;
  readonly now: () => number;
}

type Concerned = Pick<RunningJob, 'engines' | 'job'>;

export class EngineFailures {
  readonly #counted = new BoundedMap<string, Counted>(MAX_ACCOUNTS);

  constructor(private readonly options: EngineFailuresOptions) {}

  /** The engine of a provider failed at the job. */
  failed({ engines, job }: Concerned, providerId: ProviderId): void {
    const isHeld = this.#countOf(job.accountId).jobs < MAX_COUNTED;
    if (isHeld) this.#hold(providerId);
    engines.set(providerId, isHeld);
  }

  /** It is known what became of the job. `wasDone`: by another machine. */
  settle({ engines, job }: Concerned, wasDone: boolean): void {
    if (!wasDone && engines.size > 1) this.#count(job.accountId);
    else for (const [providerId, isHeld] of engines) if (!isHeld) this.#hold(providerId);
    engines.clear();
  }

  #hold(providerId: ProviderId): void {
    this.options.fleet.reputations.recordFault(providerId, 'failed', ENGINE_FAILED);
  }

  #countOf(accountId: string): Counted {
    const now = this.options.now();
    const known = this.#counted.get(accountId);
    return known === undefined || Math.abs(now - known.since) > WINDOW_MS ? { since: now, jobs: 0 } : known;
  }

  #count(accountId: string): void {
    const { since, jobs } = this.#countOf(accountId);
    this.#counted.set(accountId, { since, jobs: jobs + 1 });
  }
}
