/** `PlacementLog` records each placement decision for the chosen provider and two others in turn, in constant time. */

import { type PlacementRequest, type PoolMember, type ProviderPool, type SchedulingDecision, selectsProviders } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { chosenVerdict, type PlacementVerdict, passedVerdict } from './placement-verdict.js';

export interface LoggedDecision {
  readonly model: string;
  /** The newest verdict of this kind. */
  readonly verdict: PlacementVerdict;
  /** Number of decisions of this kind. */
  readonly count: number;
  /** Milliseconds. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** With `untrusted`: time of the newest answered challenge, in milliseconds. */
  readonly challengedAt: number | null;
}

type Mutable = { -readonly [Name in keyof LoggedDecision]: LoggedDecision[Name] };

const MAX_ENTRIES = 24;
/** Maximum distance of two decisions of one kind that are merged, in milliseconds. */
const MERGE_WINDOW_MS = 60_000;
/** Newest entries that are searched for the same kind. */
const MAX_LOOKBACK = 6;

class DecisionHistory {
  /** The oldest first. */
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

  /** The newest first. */
  get entries(): readonly LoggedDecision[] {
    return [...this.#entries].sort((a, b) => b.lastAt - a.lastAt);
  }
}

/** Providers not chosen that each decision records. */
const MAX_OTHERS = 2;

/** The parts of a session that the log reads. */
interface LoggedProvider {
  readonly models: readonly { readonly id: string }[];
  /** The newest challenge that was answered correctly. */
  readonly evidence: { readonly lastChallenge: { readonly answeredAt: number } | null };
}

/** Share of a provider in all placements since its connection. */
export interface PlacementShare {
  readonly placements: number;
  /** 0 to 1; null while nothing was placed. */
  readonly share: number | null;
}

interface LoggedDecisions {
  readonly history: DecisionHistory;
  /** Placements of each model before this connection began to offer the model. */
  readonly before: Map<string, number>;
  readonly byModel: Map<string, number>;
  readonly beforeAll: number;
}

const MAX_MODELS = 10_000;

export class PlacementLog<S extends LoggedProvider> {
  readonly #logged = new WeakMap<S, LoggedDecisions>();
  readonly #placed = new BoundedMap<string, number>(MAX_MODELS);
  /** Iterators that visit the members of each pool in turn. */
  readonly #turns = new WeakMap<ProviderPool<S>, Iterator<PoolMember<S>>>();
  #placedInAll = 0;

  /** Begins to count the models of a connection that are not counted yet. */
  follow(session: S): void {
    const { before } = this.#decisionsOf(session);
    for (const { id } of session.models) if (!before.has(id)) before.set(id, this.#placed.get(id) ?? 0);
  }

  /** Records a decision about a model's providers. */
  decided(model: string, pool: ProviderPool<S>, request: PlacementRequest, decision: SchedulingDecision<S>, now: number): void {
    const first = decision.kind === 'placed' ? decision.ordered[0] : null;
    if (first !== null) {
      this.#add(first.member.subject, model, chosenVerdict(first, request), now);
      const { byModel } = this.#decisionsOf(first.member.subject);
      byModel.set(model, (byModel.get(model) ?? 0) + 1);
      this.#countPlaced(model);
    }
    // A request that selects providers says nothing about the others.
    if (selectsProviders(request)) return;
    for (let looked = 0; looked < Math.min(MAX_OTHERS, pool.size); looked++) {
      const member = this.#next(pool);
      if (member === null) return;
      if (member.subject === first?.member.subject) continue;
      const verdict = passedVerdict(member, request, decision, { now, constants: pool.constants });
      if (verdict !== null) this.#add(member.subject, model, verdict, now);
    }
  }

  /** The newest first. */
  entries(session: S): readonly LoggedDecision[] {
    return this.#logged.get(session)?.history.entries ?? [];
  }

  /** `model` null: of all models. */
  share(session: S, model: string | null): PlacementShare {
    const logged = this.#logged.get(session);
    if (logged === undefined) return { placements: 0, share: null };
    const { before, beforeAll, byModel } = logged;
    const placed =
      model === null ? this.#placedInAll - beforeAll : (this.#placed.get(model) ?? 0) - (before.get(model) ?? this.#placed.get(model) ?? 0);
    let placements = 0;
    for (const [id, count] of byModel) if (model === null || id === model) placements += count;
    return { placements, share: placed === 0 ? null : Math.min(1, placements / placed) };
  }

  #decisionsOf(session: S): LoggedDecisions {
    let logged = this.#logged.get(session);
    if (logged === undefined) {
      logged = { history: new DecisionHistory(), before: new Map(), byModel: new Map(), beforeAll: this.#placedInAll };
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
    this.#placedInAll++;
  }

  /** The next member in turn. Members may change between two turns. */
  #next(pool: ProviderPool<S>): PoolMember<S> | null {
    const known = this.#turns.get(pool)?.next();
    if (known !== undefined && known.done !== true) return known.value;
    const members = pool.members()[Symbol.iterator]();
    this.#turns.set(pool, members);
    const next = members.next();
    return next.done === true ? null : next.value;
  }
}
