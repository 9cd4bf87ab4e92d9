/** `SessionAvailability`: whether a provider takes new jobs, by the provider's last `availability` report. Part of `ProviderSession`. */
import type { ReportedAvailability } from '@inference/protocol';

const SERVING: ReportedAvailability = { state: 'serving' };

export class SessionAvailability {
  #reported = SERVING;

  get reported(): ReportedAvailability {
    return this.#reported;
  }

  /** Whether the provider takes no new jobs: state `leaving` or `away`. The session stays connected. */
  get isAway(): boolean {
    return this.#reported.state !== 'serving';
  }

  /** Stores a report: state, and for other states than `serving` the reason and expected end. True: changed. */
  update({ state, reason, until }: ReportedAvailability): boolean {
    const before = this.#reported;
    if (state === 'serving') this.#reported = SERVING;
    else this.#reported = { state, ...(reason === undefined ? {} : { reason }), ...(until === undefined ? {} : { until }) };
    return before.state !== this.#reported.state || before.reason !== this.#reported.reason || before.until !== this.#reported.until;
  }
}
