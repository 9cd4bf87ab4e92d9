/** Measurements of providers from their verified answers: throughput, answer lengths, and cached prompt prefixes. */
import type { ProviderId } from '@inference/protocol';
import {
  estimateFromHardware,
  isPlausibleRate,
  isProven,
  type ModelIndex,
  measuredRates,
  PrefixAffinity,
  type PrefixCandidate,
  type PromptPrefix,
  type ThroughputEstimate,
} from '@inference/scheduler';
import type { SettledAnswer } from '../provider-connection.js';
import { AnswerLengthStats, type ComparedLength } from '../reputation/answer-length-stats.js';
import type { ConnectedProviders } from '../session/connected-providers.js';
import type { OnlineSession } from '../session/provider-session.js';

interface ProviderMeasurementsOptions {
  readonly index: ModelIndex<OnlineSession>;
  readonly connected: ConnectedProviders;
  /** Milliseconds. */
  readonly now: () => number;
}

export class ProviderMeasurements {
  readonly #options: ProviderMeasurementsOptions;
  readonly #prefixAffinity = new PrefixAffinity();
  readonly #answerLengthStats: AnswerLengthStats;

  constructor(options: ProviderMeasurementsOptions) {
    this.#options = options;
    this.#answerLengthStats = new AnswerLengthStats(options.now);
  }

  record(session: OnlineSession, { model, prefixes, cachedTokens, sample, tokenCounts }: SettledAnswer): void {
    const { index, connected, now } = this.#options;
    const { providerId } = session.registration.identity;
    const jobs = connected.jobsOf(providerId);
    if (jobs !== null) this.#prefixAffinity.record(prefixes, cachedTokens, providerId, jobs, now());
    if (sample !== null) {
      session.statistics.answerVerified(model);
      index.recordAnswer(session, model, sample, now());
    }
    if (tokenCounts !== null) this.#answerLengthStats.add(providerId, model, tokenCounts);
  }

  /** Whether enough answers of the provider verified for its rates with the model to count as measured, or a certificate chain holds. */
  isProven(session: OnlineSession, model: string): boolean {
    const member = this.#options.index.pool(model)?.member(session.registration.identity.providerId);
    return member !== undefined && isProven(member);
  }

  /** False for a rate far beyond every measured provider of the model, this one included. */
  isPlausibleRate(session: OnlineSession, model: string, tokensPerSecond: number): boolean {
    const { hardware, identity } = session.registration;
    const pool = this.#options.index.pool(model);
    const speed = pool?.member(identity.providerId)?.speed ?? estimateFromHardware(hardware);
    return isPlausibleRate(tokensPerSecond, { speed, hardware }, measuredRates(pool?.members() ?? []));
  }

  /** Throughput estimates that placement uses, for each model of a provider. */
  throughput(session: OnlineSession): readonly { readonly model: string; readonly speed: ThroughputEstimate }[] {
    const { providerId } = session.registration.identity;
    return session.models.flatMap(({ id }) => {
      const member = this.#options.index.pool(id)?.member(providerId);
      return member === undefined ? [] : [{ model: id, speed: member.speed }];
    });
  }

  /** Mean answer lengths of a provider by model, beside the medians of the model's providers. */
  answerLengths(session: OnlineSession): readonly { readonly model: string; readonly length: ComparedLength }[] {
    const { providerId } = session.registration.identity;
    return session.models.flatMap(({ id }) => {
      const length = this.#answerLengthStats.compare(providerId, id, () => this.#providersOf(id));
      return length === null ? [] : [{ model: id, length }];
    });
  }

  /** Providers that probably have a beginning of the prompt in their prefix cache. `prefixes`: the shortest first. */
  prefixCandidates(prefixes: readonly PromptPrefix[]): readonly PrefixCandidate[] {
    const { connected, now } = this.#options;
    return this.#prefixAffinity.candidates(prefixes, now(), (providerId) => connected.jobsOf(providerId));
  }

  *#providersOf(model: string): Iterable<ProviderId> {
    for (const { facts } of this.#options.index.pool(model)?.members() ?? []) yield facts.providerId;
  }
}
