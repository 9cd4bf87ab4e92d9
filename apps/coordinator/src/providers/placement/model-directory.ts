/**
 * `ModelDirectory` answers queries about models: which providers of this coordinator serve them, with which offers and capacity.
 *
 * Used by inference, the model list, statistics and the cluster.
 */
import type { ImageOffer, ModelOffer, ModelType, TrustLevel, VisionOffer } from '@inference/protocol';
import {
  type ModelIndex,
  meetsTrustFloor,
  type PlacementConstraints,
  type ProviderPool,
  type ProviderSelection,
  selectedMembers,
  selectsProviders,
} from '@inference/scheduler';
import type { ProviderSnapshot } from '../provider-snapshot.js';
import type { ConnectedProviders } from '../session/connected-providers.js';
import type { OnlineSession } from '../session/provider-session.js';
import { FirstSeenTimes } from './first-seen-times.js';
import { listedModels, MAX_NAMES_PER_PROVIDER } from './listed-models.js';
import type { ProviderMeasurements } from './provider-measurements.js';

export type ProviderSelector = ProviderSelection & Pick<PlacementConstraints, 'trustFloor'>;

const ANY_PROVIDER: ProviderSelector = { providerSerial: null, trustFloor: null };

/** A model with at least one serving provider. Public lists contain only some of these models. */
export interface ServedModel {
  /** Offer of one of the providers. */
  readonly offer: ModelOffer;
  readonly providers: readonly ModelProvider[];
  /** Time at which this process first saw the model, in milliseconds since 1970. */
  readonly firstSeenAt: number;
}

interface ModelProvider {
  /** This provider's own offer of the model. */
  readonly offer: ModelOffer | undefined;
  readonly trustLevel: TrustLevel | null;
  readonly isAttested: boolean;
}

export interface ModelListing {
  readonly models: readonly ServedModel[];
  /** Model names to show for a provider. Omits unlisted models, and unproven ones after the first {@link MAX_NAMES_PER_PROVIDER}. */
  namesOf(provider: Pick<ProviderSnapshot, 'registration' | 'models'>): string[];
}

export interface ModelDirectoryOptions {
  readonly index: ModelIndex<OnlineSession>;
  readonly connected: ConnectedProviders;
  readonly measurements: ProviderMeasurements;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

interface IndexedModel {
  readonly offer: ModelOffer;
  readonly sessions: readonly OnlineSession[];
}

export type CapacityListener = (models: readonly Pick<ModelOffer, 'id'>[]) => void;

const LISTED_NAMES_MS = 1000;

export class ModelDirectory {
  readonly #options: ModelDirectoryOptions;
  readonly #firstSeen: FirstSeenTimes;
  readonly #capacityListeners = new Set<CapacityListener>();
  /** Cached ids of listed models. `indexSize`: number of models in the index at that time. */
  #names: { readonly at: number; readonly indexSize: number; readonly ids: readonly string[] } | null = null;

  constructor(options: ModelDirectoryOptions) {
    this.#options = options;
    this.#firstSeen = new FirstSeenTimes((model) => options.index.pool(model) !== undefined);
  }

  /** Whether at least one provider serves the model now, even if all its slots are in use. */
  serves(model: string): boolean {
    return (this.#pool(model)?.serving ?? 0) > 0;
  }

  /** Earliest return that unavailable providers of the model have announced, in milliseconds since 1970. Null: none announced. */
  returnsAt(model: string): number | null {
    let earliest: number | null = null;
    for (const { subject } of this.#pool(model)?.members() ?? []) {
      const { state, until = null } = subject.availability;
      if (state !== 'serving' && until !== null) earliest = Math.min(earliest ?? until, until);
    }
    return earliest;
  }

  isOfType(model: string, type: ModelType): boolean {
    return this.#options.index.isOfType(model, type);
  }

  /** Number of slots at serving providers that have loaded the model or are loading it. `selector` restricts the providers. */
  slotCount(model: string, selector: ProviderSelector = ANY_PROVIDER): number {
    const { trustFloor } = selector;
    const pool = this.#pool(model);
    if (pool === undefined) return 0;
    if (!selectsProviders(selector)) return trustFloor === 'hardware' ? pool.hardwareSlots : pool.slots;
    let slots = 0;
    for (const { subject, facts, load } of selectedMembers(pool, selector)) {
      if (load.kind !== 'cold' && meetsTrustFloor(facts.trustLevel, trustFloor) && this.#isServing(subject)) slots += facts.slots;
    }
    return slots;
  }

  /** Whether a provider without the loaded model could load it for one more job. */
  canLoad(model: string): boolean {
    return (this.#pool(model)?.cold ?? 0) > 0;
  }

  /** Whether a provider of at least this trust level would take a request now, possibly after loading the model. */
  isFree(model: string, trustFloor: TrustLevel | null = null): boolean {
    const open = this.#pool(model)?.open ?? [];
    return trustFloor === 'hardware' ? open.some(({ traits }) => traits.hasHardwareTrust) : open.length > 0;
  }

  /** Longest context in tokens of the model's providers, or of those that the client selected; null: no such provider. */
  contextLength(model: string, named: ProviderSelection | null): number | null {
    const pool = this.#pool(model);
    if (pool === undefined) return null;
    if (named === null || !selectsProviders(named)) return pool.maxContextTokens;
    let longest: number | null = null;
    for (const { subject, contextTokens } of selectedMembers(pool, named)) {
      if (this.#isServing(subject)) longest = Math.max(longest ?? 0, contextTokens);
    }
    return longest;
  }

  /** Maximum image input over the model's providers. Null: none of them reads images. */
  vision(model: string): VisionOffer | null {
    const offers: VisionOffer[] = [];
    for (const { subject } of this.#pool(model)?.members() ?? []) {
      const offer = this.#isServing(subject) ? visionOfferOf(subject, model) : undefined;
      if (offer !== undefined) offers.push(offer);
    }
    return combinedVision(offers);
  }

  /** Image offers by model, from all providers that serve image models now, even if busy. */
  imageOffers(): ReadonlyMap<string, readonly ImageOffer[]> {
    const offered = new Map<string, readonly ImageOffer[]>();
    for (const model of this.#options.index.imageProviders().keys()) {
      const offers = this.imageOffersOf(model);
      if (offers.length > 0) offered.set(model, offers);
    }
    return offered;
  }

  /** Image offers of the providers that serve this model now, even if busy. */
  imageOffersOf(model: string): readonly ImageOffer[] {
    const offers: ImageOffer[] = [];
    for (const session of this.#options.index.imageProviders().get(model) ?? []) {
      const offer = imageOfferOf(session, model);
      if (offer !== undefined && this.#isServing(session)) offers.push(offer);
    }
    return offers;
  }

  /** All served models, sorted by id. */
  list(): readonly ServedModel[] {
    return this.#served().map((entry) => this.#model(entry));
  }

  /** Ids of all models with connected providers. */
  *ids(): Iterable<string> {
    for (const [id] of this.#options.index.pools()) yield id;
  }

  /** The model's providers as of now; null: none is connected. */
  poolNow(id: string): ProviderPool<unknown> | null {
    return this.#options.index.poolAt(id, this.#options.now()) ?? null;
  }

  /** A served model, even if public lists omit the model. Null: no provider serves it. */
  find(id: string): ServedModel | null {
    const pool = this.#pool(id);
    const entry = pool === undefined ? null : this.#entry(id, pool);
    return entry === null ? null : this.#model(entry);
  }

  /** The models in public lists, sorted by id. */
  listing(): ModelListing {
    const served = this.#served();
    const listed = listedModels(
      served.map(({ offer, sessions }) => ({ id: offer.id, sessions })),
      { isProven: (session, model) => this.#isProven(session, model), ownerOf: ({ ownerAccountId }) => ownerAccountId },
    );
    const unlisted = new Set(served.flatMap(({ offer: { id } }) => (listed.has(id) ? [] : [id])));
    return {
      models: served.filter(({ offer }) => listed.has(offer.id)).map((entry) => this.#model(entry)),
      namesOf: ({ registration, models }) => {
        const session = this.#options.connected.get(registration.identity.providerId);
        const isShown = (id: string, index: number): boolean =>
          !unlisted.has(id) && (index < MAX_NAMES_PER_PROVIDER || (session !== null && this.#isProven(session, id)));
        return models.map(({ id }) => id).filter(isShown);
      },
    };
  }

  /** Ids of the listed models. Cached for up to a second, because each request for an unknown model searches them. */
  listedNames(): readonly string[] {
    const at = this.#options.now();
    const { size } = this.#options.index;
    if (this.#names === null || this.#names.indexSize !== size || Math.abs(at - this.#names.at) >= LISTED_NAMES_MS) {
      this.#names = { at, indexSize: size, ids: this.listing().models.map(({ offer }) => offer.id) };
    }
    return this.#names.ids;
  }

  /** Calls the listener with models that may have gained or lost capacity, by providers, slots or trust. Returns an unsubscribe function. */
  onCapacity(listener: CapacityListener): () => void {
    this.#capacityListeners.add(listener);
    return () => this.#capacityListeners.delete(listener);
  }

  notifyCapacity(models: Parameters<CapacityListener>[0]): void {
    for (const listener of this.#capacityListeners) listener(models);
  }

  seen(models: readonly ModelOffer[]): void {
    for (const { id } of models) this.#firstSeen.record(id, this.#options.now());
  }

  #pool(model: string): ProviderPool<OnlineSession> | undefined {
    return this.#options.index.pool(model);
  }

  #isServing(session: OnlineSession): boolean {
    return this.#options.connected.isServing(session);
  }

  #isProven(session: OnlineSession, model: string): boolean {
    return session.statistics.hasVerifiedAnswer(model) || this.#options.measurements.isProven(session, model);
  }

  #served(): IndexedModel[] {
    const served: IndexedModel[] = [];
    for (const [id, pool] of this.#options.index.pools()) {
      const entry = this.#entry(id, pool);
      if (entry !== null) served.push(entry);
    }
    return served.sort((a, b) => (a.offer.id < b.offer.id ? -1 : 1));
  }

  #entry(id: string, pool: ProviderPool<OnlineSession>): IndexedModel | null {
    if (pool.serving === 0) return null;
    const sessions = [...pool.members()].map(({ subject }) => subject).filter((session) => this.#isServing(session));
    const [first] = sessions;
    const offer = first === undefined ? undefined : offerOf(first, id);
    return offer === undefined ? null : { offer, sessions };
  }

  #model({ offer, sessions }: IndexedModel): ServedModel {
    const { id } = offer;
    return {
      offer,
      providers: sessions.map((session) => ({
        offer: offerOf(session, id),
        trustLevel: session.evidence.verdict().level,
        isAttested: session.evidence.isAttested,
      })),
      firstSeenAt: this.#firstSeen.at(id) ?? this.#options.now(),
    };
  }
}

/** A provider's image offer for a model; undefined if it does not offer the model as an image model. */
export function imageOfferOf({ models }: { readonly models: readonly ModelOffer[] }, model: string): ImageOffer | undefined {
  return models.find(({ id, model_type }) => id === model && model_type === 'image')?.image;
}

/** A provider's limits for images in prompts; undefined: the provider reads none with this model. */
export function visionOfferOf({ models }: { readonly models: readonly ModelOffer[] }, model: string): VisionOffer | undefined {
  return models.find(({ id }) => id === model)?.vision;
}

/** The highest limits among several offers; null if there are none. */
export function combinedVision(offers: readonly VisionOffer[]): VisionOffer | null {
  if (offers.length === 0) return null;
  return {
    max_images: Math.max(...offers.map(({ max_images }) => max_images)),
    max_image_tokens: Math.max(...offers.map(({ max_image_tokens }) => max_image_tokens)),
  };
}

function offerOf({ models }: OnlineSession, model: string): ModelOffer | undefined {
  return models.find(({ id }) => id === model);
}
