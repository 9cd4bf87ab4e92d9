/**
 * `PlacementLog` records why placement chose a provider or not, for the provider's owner and for operators.
 *
 * A decision is recorded for the chosen provider and for at most two others, in rotation, so that recording does not cost more in a
 * larger network.
 */

import { type PlacementRequest, type PoolMember, type ProviderPool, type SchedulingDecision, selectsProviders } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { chosenVerdict, type PlacementVerdict, passedVerdict } from './placement-verdict.js';

export interface LoggedDecision {
  readonly model: string;
  /** Newest verdict with this outcome and reason. */
  readonly verdict: PlacementVerdict;
  /** Number of decisions merged into this entry. */
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** Time of the newest answered challenge, in milliseconds. Only set for the reason `untrusted`. */
  readonly challengedAt: number | null;
}

type Mutable = { -readonly [Name in keyof LoggedDecision]: LoggedDecision[Name] };

const MAX_ENTRIES = 24;
/** Decisions on one model with the same outcome and reason within this time are merged. */
const MERGE_WINDOW_MS = 60_000;
/** Number of newest entries that are searched for one to merge with. */
const MAX_LOOKBACK = 6;

class DecisionHistory {
  /** Oldest first. */
  readonly #entries: Mutable[] = [];

  add(model: string, verdict: PlacementVerdict, challengedAt: number | null, now: number): void {
    for (let back = 1; back <= MAX_LOOKBACK; back++) {
      const entry = this.#entries.at(-back);
      if (entry === undefined) break;
      if (entry.model !== model || entry.verdict.outcome !== verdict.outcome || entry.verdict.reason !== verdict.reason) continue;
      if (now - entry.lastAt > MERGE_WINDOW_MS) break;
      entry.count++;
      entry.lastAt = now;
      entry.verdict = verdict;
      entry.challengedAt = challengedAt;
      return;
    }
    this.#entries.push({ model, verdict, count: 1, firstAt: now, lastAt: now, challengedAt });
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift();
  }

  /** Newest first. */
  get entries(): readonly LoggedDecision[] {
    return [...this.#entries].sort((a, b) => b.lastAt - a.lastAt);
  }
}

/** Number of other providers that each decision is recorded for. */
const MAX_OTHERS = 2;

/** The part of a session that the log uses. */
interface LoggedProvider {
  readonly models: readonly { readonly id: string }[];
  /** Newest correctly answered challenge. */
  readonly evidence: { readonly lastChallenge: { readonly answeredAt: number } | null };
}

/** Share of a provider in the placements since it connected, or since it began to offer the model. */
export interface PlacementShare {
  readonly placements: number;
  /** 0 to 1; null if nothing was placed since then. */
  readonly share: number | null;
}

interface ModelPlacements {
  /** Placement count of the model in the network when this connection began to offer it. */
  readonly before: number;
  /** Placements on this connection. */
  placements: number;
}

interface LoggedDecisions {
  readonly history: DecisionHistory;
  /** Models that the connection offers or offered, the newest offers last. */
  readonly byModel: BoundedMap<string, ModelPlacements>;
  /** Placements of all models, at all providers, before this connection. */
  readonly totalBefore: number;
  /** Placements on this connection. */
  placements: number;
}

const MAX_MODELS = 10_000;
/** Models counted per connection. The limit exceeds the offers of one message, so that current offers are never dropped. */
const MAX_MODELS_PER_CONNECTION = 256;

export class PlacementLog<S extends LoggedProvider> {
  readonly #logged = new WeakMap<S, LoggedDecisions>();
  /** Placements at all providers, by model id. */
  readonly #placed = new BoundedMap<string, number>(MAX_MODELS);
  /** Iterators that rotate through the members of each pool. */
  readonly #turns = new WeakMap<ProviderPool<S>, Iterator<PoolMember<S>>>();
  #placedTotal = 0;

  /** Starts counting placements of the models that the connection newly offers. */
  follow(session: S): void {
    const { byModel } = this.#decisionsOf(session);
    for (const { id } of session.models) byModel.set(id, byModel.get(id) ?? { before: this.#placed.get(id) ?? 0, placements: 0 });
  }

  decided(model: string, pool: ProviderPool<S>, request: PlacementRequest, decision: SchedulingDecision<S>, now: number): void {
    const first = decision.kind === 'placed' ? decision.ordered[0] : null;
    if (first !== null) {
      this.#add(first.member.subject, model, chosenVerdict(first, request), now);
      const logged = this.#decisionsOf(first.member.subject);
      logged.placements++;
      const ofModel = logged.byModel.get(model);
      if (ofModel !== undefined) ofModel.placements++;
      this.#countPlaced(model);
    }
    // If the client selected providers, the decision says nothing about the others.
    if (selectsProviders(request)) return;
    for (let looked = 0; looked < Math.min(MAX_OTHERS, pool.size); looked++) {
      const member = this.#next(pool);
      if (member === null) return;
      if (member.subject === first?.member.subject) continue;
      const verdict = passedVerdict(member, request, decision, { now, constants: pool.constants });
      if (verdict !== null) this.#add(member.subject, model, verdict, now);
    }
  }

  /** Newest first. */
  entries(session: S): readonly LoggedDecision[] {
    return this.#logged.get(session)?.history.entries ?? [];
  }

  /** Share of a provider in the placements of a model; `model` null: of all models. */
  share(session: S, model: string | null): PlacementShare {
    const logged = this.#logged.get(session);
    if (logged === undefined) return { placements: 0, share: null };
    const ofModel = model === null ? null : logged.byModel.get(model);
    if (ofModel === undefined) return { placements: 0, share: null };
    const { placements } = ofModel ?? logged;
    const placed = model === null ? this.#placedTotal - logged.totalBefore : (this.#placed.get(model) ?? 0) - (ofModel?.before ?? 0);
    return { placements, share: placed === 0 ? null : Math.min(1, placements / placed) };
  }

  #decisionsOf(session: S): LoggedDecisions {
    let logged = this.#logged.get(session);
    if (logged === undefined) {
      logged = {
        history: new DecisionHistory(),
        byModel: new BoundedMap(MAX_MODELS_PER_CONNECTION),
        totalBefore: this.#placedTotal,
        placements: 0,
      };
      this.#logged.set(session, logged);
    }
    return logged;
  }

  #add(session: S, model: string, verdict: PlacementVerdict, now: number): void {
    const challengedAt = verdict.reason === 'untrusted' ? (session.evidence.lastChallenge?.answeredAt ?? null) : null;
    this.#decisionsOf(session).history.add(model, verdict, challengedAt, now);
  }

  #countPlaced(model: string): void {
    this.#placed.set(model, (this.#placed.get(model) ?? 0) + 1);
    this.#placedTotal++;
  }

  /** Next member in rotation. The pool may have changed since the last call. */
  #next(pool: ProviderPool<S>): PoolMember<S> | null {
    const known = this.#turns.get(pool)?.next();
    if (known !== undefined && known.done !== true) return known.value;
    const members = pool.members()[Symbol.iterator]();
    this.#turns.set(pool, members);
    const next = members.next();
    return next.done === true ? null : next.value;
  }
}
