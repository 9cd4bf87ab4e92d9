/** `PlacementService` chooses a provider of this coordinator for each attempt and reserves a slot there. */
import type { ImageOffer, ProviderId } from '@inference/protocol';
import {
  type Choice,
  type IneligibleReason,
  ineligibleReasons,
  type LatencyEstimate,
  type ModelIndex,
  type NoPlacementReason,
  type PlacementConstraints,
  type PromptPrefix,
  type ProviderFacts,
  Scheduler,
  type SchedulingRequest,
} from '@inference/scheduler';
import type { ProviderConnection, ProviderSlot } from '../provider-connection.js';
import type { ReputationRegistry } from '../reputation/reputation-registry.js';
import type { ConnectedProviders } from '../session/connected-providers.js';
import { LocalProvider, LocalSlot } from '../session/local-provider.js';
import type { OnlineSession } from '../session/provider-session.js';
import { imageOfferOf } from './model-directory.js';
import { PlacementLog } from './placement-log.js';
import type { ProviderMeasurements } from './provider-measurements.js';
import { ProviderReports } from './provider-reports.js';

interface PlacementServiceOptions {
  readonly index: ModelIndex<OnlineSession>;
  readonly connected: ConnectedProviders;
  readonly reputations: ReputationRegistry;
  readonly measurements: ProviderMeasurements;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Numbers in [0, 1). */
  readonly random: () => number;
}

export type PlacementChoice =
  | {
      readonly kind: 'placed';
      readonly estimate: LatencyEstimate;
      readonly why: Choice<unknown>['why'];
      /** Reserves the slot. Must be called in the same turn of the event loop, or not at all. */
      readonly takeSlot: () => ProviderSlot;
    }
  /** Suitable providers exist, but none can take the request now. Waiting may help. */
  | { readonly kind: 'busy' }
  /** No suitable provider exists, so the request is refused without waiting. */
  | { readonly kind: 'none'; readonly reason: NoPlacementReason };

/** A provider that claims a serial number. Only `hardware` trust proves the claim. */
export type SerialClaimant = Pick<ProviderFacts, 'providerId' | 'trustLevel'>;

export class PlacementService {
  readonly #options: PlacementServiceOptions;
  readonly #scheduler: Scheduler<OnlineSession>;
  readonly #log = new PlacementLog<OnlineSession>();
  readonly #local = new WeakMap<OnlineSession, LocalProvider>();
  /** Figures about single providers, for their owners and for operators. */
  readonly reports: ProviderReports;

  constructor(options: PlacementServiceOptions) {
    const { index, connected, reputations, measurements, now, random } = options;
    this.#options = options;
    this.#scheduler = new Scheduler({
      models: index,
      now,
      random,
      facts: (session, at) => (connected.isCurrent(session) ? connected.facts(session, at) : null),
      isDistrusted: ({ providerId }) => reputations.isDistrusted(providerId),
    });
    this.reports = new ProviderReports({ log: this.#log, connected, measurements, now });
  }

  /** Chooses one of the model's providers. `prefixes`: prompt prefixes, shortest first. */
  choose(model: string, request: SchedulingRequest, prefixes: readonly PromptPrefix[] = []): PlacementChoice {
    const prefixCandidates = prefixes.length === 0 ? [] : this.#options.measurements.prefixCandidates(prefixes);
    const demand: SchedulingRequest = prefixCandidates.length === 0 ? request : { ...request, prefixCandidates };
    const { decision, pool, now } = this.#scheduler.choose(model, demand);
    // Searches for idle providers only are not logged, because they may place nothing.
    if (pool !== null && request.idleOnly !== true) this.#log.decided(model, pool, demand, decision, now);
    if (decision.kind !== 'placed') return decision;
    const [{ member, estimate, why }] = decision.ordered;
    return { kind: 'placed', estimate, why, takeSlot: () => this.#takeSlot(member.subject, model) };
  }

  /** Reasons why providers of a model may not serve a request with these constraints now. Eligible providers have no entry. */
  ineligibleReasons(model: string, constraints: PlacementConstraints): ReadonlyMap<ProviderId, IneligibleReason> {
    const { index, now } = this.#options;
    return ineligibleReasons(index.pool(model)?.members() ?? [], constraints, now());
  }

  /** Connected providers whose attestation contains the serial number. */
  claimants(serialNumber: string): SerialClaimant[] {
    const { connected } = this.#options;
    return [...connected.withSerial(serialNumber)].map((session) => {
      const { providerId, trustLevel } = connected.facts(session);
      return { providerId, trustLevel };
    });
  }

  /** Connected providers of a model that are linked to this account. */
  *providersOfOwner(model: string, accountId: string): Iterable<ProviderId> {
    for (const { subject, facts } of this.#options.index.pool(model)?.members() ?? []) {
      if (subject.ownerAccountId === accountId) yield facts.providerId;
    }
  }

  /** Providers of a model whose image offer does not satisfy `fits`. */
  *unfitForImages(model: string, fits: (offer: ImageOffer | undefined) => boolean): Iterable<ProviderId> {
    for (const { subject, facts } of this.#options.index.pool(model)?.members() ?? []) {
      if (!fits(imageOfferOf(subject, model))) yield facts.providerId;
    }
  }

  /** A provider's connection, if it still has this session; otherwise null. */
  connection(providerId: ProviderId, sessionId: string): ProviderConnection | null {
    const session = this.#options.connected.get(providerId);
    return session?.sessionId === sessionId ? this.#localProvider(session) : null;
  }

  /** Closes the session of a provider that has since connected to another coordinator. No effect if it has no session here. */
  replacedElsewhere(providerId: ProviderId): void {
    this.#options.connected.get(providerId)?.reject('replaced', 'the same enclave key has connected to another coordinator');
  }

  /** Calls the listener with the prompt prefixes of each settled answer. Returns a function that unsubscribes. */
  onPrefixesCached(listener: (prefixes: readonly PromptPrefix[]) => void): () => void {
    return this.#options.measurements.onPrefixesCached(listener);
  }

  /** Maximum plausible decode rate of a provider with a model, in tokens per second; null: unlimited. */
  maxPlausibleRate(providerId: ProviderId, model: string): number | null {
    const session = this.#options.connected.get(providerId);
    const limit = session === null ? Number.POSITIVE_INFINITY : this.#options.measurements.maxPlausibleRate(session, model);
    return Number.isFinite(limit) ? limit : null;
  }

  /** Updates the session in the model index, after its models, load, slots, trust or reputation changed. */
  updateIndex(session: OnlineSession): void {
    const { index, connected, now } = this.#options;
    if (!connected.isCurrent(session)) return;
    const at = now();
    index.update(session, connected.facts(session, at), at);
  }

  /** Starts counting placements of the models that the session offers. */
  follow(session: OnlineSession): void {
    this.#log.follow(session);
  }

  #takeSlot(session: OnlineSession, model: string): ProviderSlot {
    const { index, now } = this.#options;
    const slot = new LocalSlot(this.#localProvider(session), session);
    index.jobPlaced(session, model, now());
    session.statistics.placements++;
    this.updateIndex(session);
    return slot;
  }

  #localProvider(session: OnlineSession): LocalProvider {
    let provider = this.#local.get(session);
    if (provider === undefined) {
      provider = new LocalProvider(session, this.#options);
      this.#local.set(session, provider);
    }
    return provider;
  }
}
