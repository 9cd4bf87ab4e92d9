/** `ProviderReports`: placements, throughput and answer lengths of single providers, and requests per model. For owners and operators. */
import type { ProviderId } from '@inference/protocol';
import type { ThroughputEstimate } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { MINUTE_MS } from '../../time-units.js';
import type { ComparedLength } from '../reputation/answer-length-stats.js';
import type { ConnectedProviders } from '../session/connected-providers.js';
import type { OnlineSession } from '../session/provider-session.js';
import type { LoggedDecision, PlacementLog, PlacementShare } from './placement-log.js';
import type { ProviderMeasurements } from './provider-measurements.js';

interface ProviderReportsOptions {
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

  /** Share of this connection in the placements since it began, or since it first offered the model. `model` null: of all models. */
  share(providerId: ProviderId, model: string | null): PlacementShare {
    const session = this.#options.connected.get(providerId);
    return session === null ? { placements: 0, share: null } : this.#options.log.share(session, model);
  }

  /** Recent placement decisions about a provider, newest first. */
  decisions(providerId: ProviderId): readonly LoggedDecision[] {
    const session = this.#options.connected.get(providerId);
    return session === null ? [] : this.#options.log.entries(session);
  }

  /** Throughput estimates by model, as placement uses them. */
  throughput(providerId: ProviderId): readonly { readonly model: string; readonly speed: ThroughputEstimate }[] {
    const session = this.#options.connected.get(providerId);
    return session === null ? [] : this.#options.measurements.throughput(session);
  }

  /** Mean answer lengths by model, with the medians of all providers of the model. */
  answerLengths(providerId: ProviderId): readonly { readonly model: string; readonly length: ComparedLength }[] {
    const session = this.#options.connected.get(providerId);
    return session === null ? [] : this.#options.measurements.answerLengths(session);
  }

  requestReceived(model: string): void {
    this.#requests.add(model, this.#options.now());
  }

  /** Number of requests for a model in the current minute and the four before. */
  recentRequests(model: string): number {
    return this.#requests.recent(model, this.#options.now());
  }
}

/** Length of the window in minutes, including the current one. */
const WINDOW_MINUTES = 5;
const MAX_MODELS = 10_000;

class RequestCounts {
  /** Counts per minute, oldest first. Key: model id. */
  readonly #models = new BoundedMap<string, { minute: number; count: number }[]>(MAX_MODELS);

  add(model: string, now: number): void {
    const minute = Math.floor(now / MINUTE_MS);
    const minutes = this.#models.get(model) ?? [];
    const newest = minutes.at(-1);
    if (newest !== undefined && newest.minute >= minute) {
      newest.count++;
      return;
    }
    minutes.push({ minute, count: 1 });
    if (minutes.length > WINDOW_MINUTES) minutes.shift();
    this.#models.set(model, minutes);
  }

  recent(model: string, now: number): number {
    const first = Math.floor(now / MINUTE_MS) - (WINDOW_MINUTES - 1);
    let count = 0;
    for (const { minute, count: some } of this.#models.get(model) ?? []) if (minute >= first) count += some;
    return count;
  }
}
