/**
 * `Scheduler` chooses providers for a request from the pool of its model.
 *
 * If no provider was found but stored facts about some had expired, those are refreshed and the choice is repeated.
 */
import { type ProviderFacts, selectsProviders } from '../eligibility.js';
import type { IndexedProvider, ModelIndex } from '../pool/model-index.js';
import type { PoolMember } from '../pool/provider-groups.js';
import type { ProviderPool } from '../pool/provider-pool.js';
import { withProbe } from './probe-policy.js';
import { type PlacementRequest, type SchedulingDecision, schedule } from './schedule.js';

export interface SchedulingRequest extends PlacementRequest {
  /** The answer is verified before delivery, so a false one can be discarded. */
  readonly revocable?: boolean;
}

interface SchedulerDependencies<S extends IndexedProvider> {
  readonly models: ModelIndex<S>;
  /** Milliseconds. The system clock may be set back at any time. */
  readonly now: () => number;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** Facts of a session at `now`; null: the session ended or was replaced. */
  readonly facts: (subject: S, now: number) => ProviderFacts | null;
  /** Whether the provider is on probation after a false answer. */
  readonly isDistrusted: (facts: ProviderFacts) => boolean;
}

interface ScheduledPlacement<S> {
  readonly decision: SchedulingDecision<S>;
  /** The pool of the decision; null: no provider has the model. */
  readonly pool: ProviderPool<S> | null;
  /** Time of the decision, in milliseconds. */
  readonly now: number;
}

/** Maximum rounds of refreshing expired members. More than one is needed only if the clock changes during a choice. */
export const MAX_ROUNDS = 3;

export class Scheduler<S extends IndexedProvider> {
  readonly #deps: SchedulerDependencies<S>;

  constructor(deps: SchedulerDependencies<S>) {
    this.#deps = deps;
  }

  /** Does not place the job: the caller sends it to the first choice that takes it. */
  choose(model: string, demand: SchedulingRequest): ScheduledPlacement<S> {
    const { models, random, isDistrusted } = this.#deps;
    for (let round = 0; ; round++) {
      const now = this.#deps.now();
      const pool = models.poolAt(model, now);
      if (pool === undefined) {
        const reason = selectsProviders(demand) ? 'no_such_serial' : 'none_routable';
        return { decision: { kind: 'none', reason, expired: [] }, pool: null, now };
      }
      const scheduled = schedule(pool, demand, now, random);
      if (scheduled.kind === 'placed' || scheduled.expired.length === 0 || round === MAX_ROUNDS) {
        const rules = { now, random, isDistrusted: ({ facts }: PoolMember<S>) => isDistrusted(facts) };
        return { decision: withProbe(pool, demand, scheduled, rules), pool, now };
      }
      // Facts can expire before the timer that refreshes them fires.
      for (const { subject } of scheduled.expired) this.#refresh(subject, now);
    }
  }

  #refresh(subject: S, now: number): void {
    const { models, facts } = this.#deps;
    const fresh = facts(subject, now);
    if (fresh === null) models.purge(subject);
    else models.update(subject, fresh, now);
  }
}
