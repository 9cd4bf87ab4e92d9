/** `ProviderMeasurements`: throughput, answer lengths and cached prompt prefixes of providers, from their verified answers. */
import type { ProviderId } from '@inference/protocol';
import {
  estimateFromHardware,
  type FastestRates,
  fastestRates,
  isPlausibleRate,
  isProven,
  type MeasuredRate,
  type ModelIndex,
  maxPlausibleRate,
  measuredRates,
  PrefixAffinity,
  type PrefixCandidate,
  type PromptPrefix,
  type ThroughputEstimate,
} from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { SettledAnswer } from '../provider-connection.js';
import { AnswerLengthStats, type ComparedLength } from '../reputation/answer-length-stats.js';
import type { ConnectedProviders } from '../session/connected-providers.js';
import type { OnlineSession } from '../session/provider-session.js';

interface ProviderMeasurementsOptions {
  readonly index: ModelIndex<OnlineSession>;
  readonly connected: ConnectedProviders;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Lifetime of the cached fastest rates of a model, in milliseconds. */
const FASTEST_RATES_MS = 10_000;
const MAX_MODELS = 10_000;

export class ProviderMeasurements {
  readonly #options: ProviderMeasurementsOptions;
  readonly #prefixAffinity = new PrefixAffinity();
  readonly #prefixListeners = new Set<(prefixes: readonly PromptPrefix[]) => void>();
  readonly #answerLengthStats: AnswerLengthStats;
  /** Key: model id. */
  readonly #fastest = new BoundedMap<string, FastestRates & { readonly at: number }>(MAX_MODELS);

  constructor(options: ProviderMeasurementsOptions) {
    this.#options = options;
    this.#answerLengthStats = new AnswerLengthStats(options.now);
  }

  /** Calls the listener with the prompt prefixes of each settled answer. Returns a function that unsubscribes. */
  onPrefixesCached(listener: (prefixes: readonly PromptPrefix[]) => void): () => void {
    this.#prefixListeners.add(listener);
    return () => this.#prefixListeners.delete(listener);
  }

  /** Records what a verified answer shows about its provider. */
  record(session: OnlineSession, { model, prefixes, cachedTokens, sample, tokenCounts }: SettledAnswer): void {
    const { index, connected, now } = this.#options;
    const { providerId } = session.registration.identity;
    const jobs = connected.jobsOf(providerId);
    if (jobs !== null) this.#prefixAffinity.record(prefixes, cachedTokens, providerId, jobs, now());
    if (prefixes.length > 0) for (const listener of this.#prefixListeners) listener(prefixes);
    if (sample !== null) {
      session.statistics.recordVerifiedAnswer(model);
      index.recordAnswer(session, model, sample, now());
    }
    if (tokenCounts !== null) this.#answerLengthStats.add(providerId, model, tokenCounts);
  }

  /** Whether the provider has trust level `hardware`, or has given enough verified answers with this model. */
  isProven(session: OnlineSession, model: string): boolean {
    const member = this.#options.index.pool(model)?.member(session.registration.identity.providerId);
    return member !== undefined && isProven(member);
  }

  /** False if the rate is far above the rates of all measured providers of the model, including this one. */
  isPlausibleRate(session: OnlineSession, model: string, tokensPerSecond: number): boolean {
    return isPlausibleRate(tokensPerSecond, this.#rateOf(session, model), measuredRates(this.#options.index.pool(model)?.members() ?? []));
  }

  /** Maximum plausible rate of the provider, in tokens per second; Infinity: unlimited. Compares with rates that are up to 10 s old. */
  maxPlausibleRate(session: OnlineSession, model: string): number {
    return maxPlausibleRate(this.#rateOf(session, model), this.#fastestOf(model));
  }

  /** Throughput estimates of a provider's models, as placement uses them. */
  throughput(session: OnlineSession): readonly { readonly model: string; readonly speed: ThroughputEstimate }[] {
    const { providerId } = session.registration.identity;
    return session.models.flatMap(({ id }) => {
      const member = this.#options.index.pool(id)?.member(providerId);
      return member === undefined ? [] : [{ model: id, speed: member.speed }];
    });
  }

  /** Mean answer lengths of a provider by model, with the medians of all providers of the model. */
  answerLengths(session: OnlineSession): readonly { readonly model: string; readonly length: ComparedLength }[] {
    const { providerId } = session.registration.identity;
    return session.models.flatMap(({ id }) => {
      const length = this.#answerLengthStats.compare(providerId, id, () => this.#providersOf(id));
      return length === null ? [] : [{ model: id, length }];
    });
  }

  /** Providers that probably have a prefix of the prompt in their cache. `prefixes`: shortest first. */
  prefixCandidates(prefixes: readonly PromptPrefix[]): readonly PrefixCandidate[] {
    const { connected, now } = this.#options;
    return this.#prefixAffinity.candidates(prefixes, now(), (providerId) => connected.jobsOf(providerId));
  }

  #rateOf({ registration: { hardware, identity } }: OnlineSession, model: string): MeasuredRate {
    const speed = this.#options.index.pool(model)?.member(identity.providerId)?.speed ?? estimateFromHardware(hardware);
    return { speed, hardware };
  }

  #fastestOf(model: string): FastestRates {
    const { index, now } = this.#options;
    const known = this.#fastest.get(model);
    if (known !== undefined && Math.abs(now() - known.at) < FASTEST_RATES_MS) return known;
    const fastest = { ...fastestRates(measuredRates(index.pool(model)?.members() ?? [])), at: now() };
    this.#fastest.set(model, fastest);
    return fastest;
  }

  *#providersOf(model: string): Iterable<ProviderId> {
    for (const { facts } of this.#options.index.pool(model)?.members() ?? []) yield facts.providerId;
  }
}
