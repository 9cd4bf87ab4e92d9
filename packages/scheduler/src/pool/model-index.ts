/** `ModelIndex` maps each model to the pool of provider sessions (connections) that offer it. The caller reports session changes. */
import type { Hardware, ModelOffer, ModelType, ProviderId } from '@inference/protocol';
import { loadAfterPlacement, loadFromOffer, type ModelLoad, READY_LOAD, wasReady } from '../cost/model-load.js';
import type { AnswerSample, ThroughputStats } from '../cost/throughput-stats.js';
import { offerTraits, type ProviderFacts } from '../eligibility.js';
import { DEFAULT_CONSTANTS, type SchedulerConstants } from '../scheduler-constants.js';
import { ProviderPool } from './provider-pool.js';

/** What the index reads of a provider session. */
export interface IndexedProvider {
  /** Replaced by a new array on each change; the index compares identity. */
  readonly models: readonly ModelOffer[];
  readonly registration: { readonly identity: { readonly providerId: ProviderId }; readonly hardware: Hardware };
}

/** Models of a session as last indexed, with the load state by model id. */
interface Listing {
  readonly models: readonly ModelOffer[];
  readonly loads: Map<string, ModelLoad>;
}

export class ModelIndex<S extends IndexedProvider> {
  readonly #speeds: ThroughputStats;
  readonly #constants: SchedulerConstants;
  /** Key: model id. */
  readonly #pools = new Map<string, ProviderPool<S>>();
  readonly #listed = new Map<S, Listing>();
  /** Sessions that offer a model as an embedding or image model. Key: type, then model id. */
  readonly #nonTextSessions: Readonly<Record<Exclude<ModelType, 'text'>, Map<string, Set<S>>>> = { embedding: new Map(), image: new Map() };

  constructor(speeds: ThroughputStats, constants: SchedulerConstants = DEFAULT_CONSTANTS) {
    this.#speeds = speeds;
    this.#constants = constants;
  }

  /** Adds or updates a session in the pools of its models. `now` in milliseconds. */
  update(session: S, facts: ProviderFacts, now: number): void {
    const { loads } = this.#listing(session, now);
    for (const offer of session.models) this.#put(session, facts, offer, loads, now);
  }

  /** Records a placed job. A provider without the model in memory starts loading. */
  jobPlaced(session: S, model: string, now: number): void {
    this.#pools.get(model)?.jobPlaced(session.registration.identity.providerId);
    const loads = this.#listed.get(session)?.loads;
    const load = loads?.get(model);
    if (loads !== undefined && load !== undefined) loads.set(model, loadAfterPlacement(load, now));
  }

  remove(session: S): void {
    for (const { id } of this.#listed.get(session)?.models ?? []) this.#unlist(session, id);
    this.#listed.delete(session);
  }

  /** Removes a stale session from every pool, including pools of models that it no longer lists. */
  purge(session: S): void {
    this.remove(session);
    for (const model of [...this.#pools.keys()]) this.#unlist(session, model);
  }

  /** Updates the throughput estimate from a verified answer, unless the model was not in memory when the job began. */
  recordAnswer(session: S, model: string, sample: AnswerSample, now: number): void {
    const { identity, hardware } = session.registration;
    const loads = this.#listed.get(session)?.loads;
    const load = loads?.get(model);
    if (loads === undefined || load === undefined || !wasReady(load, now - sample.elapsedMs)) return;
    const learned = this.#speeds.record(identity.providerId, model, hardware, sample);
    const member = this.#pools.get(model)?.member(identity.providerId);
    const offer = session.models.find(({ id }) => id === model);
    if (learned !== null && offer !== undefined && member?.subject === session) this.#put(session, member.facts, offer, loads, now);
  }

  /** Pool of a model, refreshed to `now` in milliseconds. */
  poolAt(model: string, now: number): ProviderPool<S> | undefined {
    const pool = this.#pools.get(model);
    pool?.refresh(now);
    return pool;
  }

  /** Whether any provider offers the model as this type. */
  isOfType(model: string, type: ModelType): boolean {
    if (type !== 'text') return this.#nonTextSessions[type].has(model);
    let others = 0;
    for (const offerers of Object.values(this.#nonTextSessions)) others += offerers.get(model)?.size ?? 0;
    return others < (this.#pools.get(model)?.size ?? 0);
  }

  /** Sessions with an image model. Key: model id. */
  imageProviders(): ReadonlyMap<string, ReadonlySet<S>> {
    return this.#nonTextSessions.image;
  }

  pool(model: string): ProviderPool<S> | undefined {
    return this.#pools.get(model);
  }

  get size(): number {
    return this.#pools.size;
  }

  pools(): Iterable<[string, ProviderPool<S>]> {
    return this.#pools;
  }

  #listing(session: S, now: number): Listing {
    const before = this.#listed.get(session);
    if (before !== undefined && before.models === session.models) return before;
    const loads = new Map<string, ModelLoad>();
    for (const offer of session.models) loads.set(offer.id, loadFromOffer(before?.loads.get(offer.id), offer, now));
    const types = new Map(session.models.map(({ id, model_type: type }) => [id, type]));
    for (const { id, model_type: type } of before?.models ?? []) {
      if (!types.has(id)) this.#unlist(session, id);
      else if (types.get(id) !== type) this.#clearType(session, id);
    }
    const listing = { models: session.models, loads };
    this.#listed.set(session, listing);
    return listing;
  }

  #unlist(session: S, model: string): void {
    const pool = this.#pools.get(model);
    pool?.remove(session, session.registration.identity.providerId);
    if (pool?.size === 0) this.#pools.delete(model);
    this.#clearType(session, model);
  }

  #clearType(session: S, model: string): void {
    for (const pools of Object.values(this.#nonTextSessions)) {
      const offerers = pools.get(model);
      if (offerers?.delete(session) === true && offerers.size === 0) pools.delete(model);
    }
  }

  #put(session: S, facts: ProviderFacts, offer: ModelOffer, loads: ReadonlyMap<string, ModelLoad>, now: number): void {
    let pool = this.#pools.get(offer.id);
    if (pool === undefined) {
      pool = new ProviderPool(this.#constants);
      this.#pools.set(offer.id, pool);
    }
    if (offer.model_type !== 'text') {
      const pools = this.#nonTextSessions[offer.model_type];
      pools.set(offer.id, (pools.get(offer.id) ?? new Set()).add(session));
    }
    const speed = this.#speeds.estimate(facts.providerId, offer.id, session.registration.hardware);
    pool.put(session, facts, speed, offer.context_length, now, loads.get(offer.id) ?? READY_LOAD, offerTraits(offer));
  }
}
