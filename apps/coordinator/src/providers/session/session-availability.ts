/** `SessionAvailability`: whether a provider takes new jobs, as its newest `availability` message says. Part of `ProviderSession`. */
import type { ReportedAvailability } from '@inference/protocol';

const SERVING: ReportedAvailability = { state: 'serving' };

export class SessionAvailability {
  #reported = SERVING;

  get reported(): ReportedAvailability {
    return this.#reported;
  }

  /** Whether the provider takes no new jobs (`leaving` or `away`), although it stays connected. */
  get isAway(): boolean {
    return this.#reported.state !== 'serving';
  }

  /** Stores a report. Reason and expected end apply to states other than `serving`. Returns whether anything changed. */
  update({ state, reason, until }: ReportedAvailability): boolean {
    const before = this.#reported;
    if (state === 'serving') this.#reported = SERVING;
    else this.#reported = { state, ...(reason === undefined ? {} : { reason }), ...(until === undefined ? {} : { until }) };
    return before.state !== this.#reported.state || before.reason !== this.#reported.reason || before.until !== this.#reported.until;
  }
}
