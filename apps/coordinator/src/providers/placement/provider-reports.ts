/** Figures about single providers for their owners and operators: placement decisions, shares, throughput and answer lengths. Also the recent demand for models. */
import type { ProviderId } from '@inference/protocol';
import type { ThroughputEstimate } from '@inference/scheduler';
import type { ComparedLength } from '../reputation/answer-lengths.js';
import type { ConnectedProviders } from '../session/connected-providers.js';
import type { OnlineSession } from '../session/provider-session.js';
import type { LoggedDecision } from './decision-history.js';
import type { PlacementLog, PlacementShare } from './placement-log.js';
import type { ProviderMeasurements } from './provider-measurements.js';
import { RequestCounts } from './request-counts.js';

export interface ProviderReportsOptions {
  readonly log: PlacementLog<OnlineSession>;
  readonly connected: ConnectedProviders;
  readonly measurements: ProviderMeasurements;
  readonly now: () => number;
}

/** Reports on a provider that is not connected are empty. */
export class ProviderReports {
  readonly #options: ProviderReportsOptions;
  readonly #requests = new RequestCounts();

  constructor(options: ProviderReportsOptions) {
    this.#options = options;
  }

  /** Placements on this connection as a share of all since it began; with a model, of that model's alone. */
  share(providerId: ProviderId, model: string | null): PlacementShare {
    const session = this.#options.connected.get(providerId);
    return session === null ? { placements: 0, share: null } : this.#options.log.share(session, model);
  }

  /** The last placement decisions about a provider, the newest first. */
  decisions(providerId: ProviderId): readonly LoggedDecision[] {
    const session = this.#options.connected.get(providerId);
    return session === null ? [] : this.#options.log.entries(session);
  }

  /** Throughput estimates that placement uses, by model. */
  throughput(providerId: ProviderId): readonly { readonly model: string; readonly speed: ThroughputEstimate }[] {
    const session = this.#options.connected.get(providerId);
    return session === null ? [] : this.#options.measurements.throughput(session);
  }

  /** Mean answer lengths by model, beside the medians of the model's providers. */
  answerLengths(providerId: ProviderId): readonly { readonly model: string; readonly length: ComparedLength }[] {
    const session = this.#options.connected.get(providerId);
    return session === null ? [] : this.#options.measurements.answerLengths(session);
  }

  requestReceived(model: string): void {
    this.#requests.add(model, this.#options.now());
  }

  /** Requests for a model in the last five minutes. */
  recentRequests(model: string): number {
    return this.#requests.recent(model, this.#options.now());
  }
}
