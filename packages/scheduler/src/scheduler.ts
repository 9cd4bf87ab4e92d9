/**
 * Chooses on the boards, which may be behind the clock: members that it has overtaken are looked at again before the choice is
 * made. Whatever the clock does and whoever is still listed, that ends after a few rounds, because one choice that never
 * ended would stop the whole process.
 */

import { namesProvider, type ProviderFacts } from './eligibility.js';
import type { IndexedProvider, ModelIndex } from './model-index.js';
import { withProbe } from './probe-policy.js';
import type { PoolMember, ProviderPool } from './provider-pool.js';
import { type PlacementRequest, type SchedulingDecision, schedule } from './schedule.js';

/** A job for a machine, as far as it says which. */
export interface SchedulingRequest extends PlacementRequest {
  /** Nothing of the answer is delivered before it is verified. */
  readonly revocable?: boolean;
}

export interface SchedulerDependencies<S extends IndexedProvider> {
  readonly models: ModelIndex<S>;
  /** Milliseconds. It may be set back at any moment. */
  readonly now: () => number;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** How a subject stands at `now`; null: it is no longer the one that stands for its provider. */
  readonly facts: (subject: S, now: number) => ProviderFacts | null;
  /** On trial after a lie. */
  readonly isDistrusted: (facts: ProviderFacts) => boolean;
}

export interface ScheduledPlacement<S> {
  readonly decision: SchedulingDecision<S>;
  /** What it was made from; null when nobody has the model. */
  readonly pool: ProviderPool<S> | null;
  /** The moment for which it was made, in milliseconds. */
  readonly now: number;
}

/**
 * Rounds in which overtaken members are looked at again. Each brings them to the moment of the choice, so that a second one is
 * needed only where the clock was set in between.
 */
export const MAX_ROUNDS = 3;

export class Scheduler<S extends IndexedProvider> {
  readonly #deps: SchedulerDependencies<S>;

  constructor(deps: SchedulerDependencies<S>) {
    this.#deps = deps;
  }

  choose(model: string, demand: SchedulingRequest): ScheduledPlacement<S> {
    const { models, random, isDistrusted } = this.#deps;
    for (let round = 0; ; round++) {
      const now = this.#deps.now();
      const pool = models.poolAt(model, now);
      if (pool === undefined) {
        const reason = namesProvider(demand) ? 'no_such_serial' : 'none_routable';
        return { decision: { kind: 'none', reason, expired: [] }, pool: null, now };
      }
      const scheduled = schedule(pool, demand, now, random);
      if (scheduled.kind === 'placed' || scheduled.expired.length === 0 || round === MAX_ROUNDS) {
        const rules = { now, random, isDistrusted: ({ facts }: PoolMember<S>) => isDistrusted(facts) };
        return { decision: withProbe(pool, demand, scheduled, rules), pool, now };
      }
      // The clock was ahead of the timers. Some of them may be as good as before, after a look at their evidence.
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
