/**
 * A board for every model, and which sessions stand on which. Kept up to date as providers come, change and go, and as they take
 * models into memory.
 */
import type { Hardware, ModelOffer, ModelType, ProviderId } from '@inference/protocol';
import { Board } from './scheduler/board.js';
import { CONSTANTS, type SchedulerConstants } from './scheduler/constants.js';
import type { ProviderFacts } from './scheduler/gates.js';
import { type Load, loadOfJob, READY, reportedLoad, wasReady } from './scheduler/load.js';
import type { Sample, SpeedBook } from './scheduler/speed-book.js';

/** A provider as its models' boards see it. */
export interface Offering {
  /** A new list when anything of it changed. */
  readonly models: readonly ModelOffer[];
  readonly registration: { readonly identity: { readonly providerId: ProviderId }; readonly hardware: Hardware };
}

interface Listing {
  readonly models: readonly ModelOffer[];
  readonly loads: Map<string, Load>;
}

export class ModelBoards<S extends Offering> {
  readonly #speeds: SpeedBook;
  readonly #constants: SchedulerConstants;
  readonly #boards = new Map<string, Board<S>>();
  readonly #listed = new Map<S, Listing>();
  /** Who offers a model as one for something else than text. */
  readonly #special: Readonly<Record<Exclude<ModelType, 'text'>, Map<string, Set<S>>>> = { embedding: new Map(), image: new Map() };

  constructor(speeds: SpeedBook, constants: SchedulerConstants = CONSTANTS) {
    this.#speeds = speeds;
    this.#constants = constants;
  }

  /** Takes in what a session offers and how it stands now. `now` in milliseconds. */
  update(session: S, facts: ProviderFacts, now: number): void {
    const { loads } = this.#listing(session, now);
    for (const offer of session.models) this.#put(session, facts, offer, loads, now);
  }

  /** Takes in that a job for the model is on its way: who has to load it begins with that. */
  began(session: S, model: string, now: number): void {
    this.#boards.get(model)?.began(session.registration.identity.providerId);
    const loads = this.#listed.get(session)?.loads;
    const load = loads?.get(model);
    if (loads !== undefined && load !== undefined) loads.set(model, loadOfJob(load, now));
  }

  remove(session: S): void {
    for (const { id } of this.#listed.get(session)?.models ?? []) this.#unlist(session, id);
    this.#listed.delete(session);
  }

  /** Forgets a session that is on boards although it should not be, whatever else is known of it. */
  strike(session: S): void {
    this.remove(session);
    for (const model of [...this.#boards.keys()]) this.#unlist(session, model);
  }

  /** Takes in how fast a verified answer was. */
  learn(session: S, model: string, sample: Sample, now: number): void {
    const { identity, hardware } = session.registration;
    const loads = this.#listed.get(session)?.loads;
    const load = loads?.get(model);
    if (loads === undefined || load === undefined || !wasReady(load, now - sample.elapsedMs)) return;
    const learned = this.#speeds.learn(identity.providerId, model, hardware, sample);
    const member = this.#boards.get(model)?.member(identity.providerId);
    const offer = session.models.find(({ id }) => id === model);
    if (learned !== null && offer !== undefined && member?.subject === session) this.#put(session, member.facts, offer, loads, now);
  }

  /** The board of a model as of `now`, in milliseconds. */
  boardAt(model: string, now: number): Board<S> | undefined {
    const board = this.#boards.get(model);
    board?.refresh(now);
    return board;
  }

  /** Whether anybody who is listed offers the model for this. */
  isOfType(model: string, type: ModelType): boolean {
    if (type !== 'text') return this.#special[type].has(model);
    let others = 0;
    for (const offerers of Object.values(this.#special)) others += offerers.get(model)?.size ?? 0;
    return others < (this.#boards.get(model)?.size ?? 0);
  }

  /** Who offers which models as ones for images. */
  ofImages(): ReadonlyMap<string, ReadonlySet<S>> {
    return this.#special.image;
  }

  board(model: string): Board<S> | undefined {
    return this.#boards.get(model);
  }

  get size(): number {
    return this.#boards.size;
  }

  models(): Iterable<[string, Board<S>]> {
    return this.#boards;
  }

  #listing(session: S, now: number): Listing {
    const before = this.#listed.get(session);
    if (before !== undefined && before.models === session.models) return before;
    const loads = new Map<string, Load>();
    for (const offer of session.models) loads.set(offer.id, reportedLoad(before?.loads.get(offer.id), offer, now));
    for (const { id } of before?.models ?? []) if (!loads.has(id)) this.#unlist(session, id);
    const listing = { models: session.models, loads };
    this.#listed.set(session, listing);
    return listing;
  }

  #unlist(session: S, model: string): void {
    const board = this.#boards.get(model);
    board?.remove(session, session.registration.identity.providerId);
    if (board?.size === 0) this.#boards.delete(model);
    for (const models of Object.values(this.#special)) {
      const offerers = models.get(model);
      if (offerers?.delete(session) === true && offerers.size === 0) models.delete(model);
    }
  }

  #put(session: S, facts: ProviderFacts, offer: ModelOffer, loads: ReadonlyMap<string, Load>, now: number): void {
    let board = this.#boards.get(offer.id);
    if (board === undefined) {
      board = new Board(this.#constants);
      this.#boards.set(offer.id, board);
    }
    if (offer.model_type !== 'text') {
      const models = this.#special[offer.model_type];
      models.set(offer.id, (models.get(offer.id) ?? new Set()).add(session));
    }
    const speed = this.#speeds.speed(facts.providerId, offer.id, session.registration.hardware);
    board.put(session, facts, speed, offer.context_length, now, loads.get(offer.id) ?? READY);
  }
}
