/** `SessionAvailability`: whether a provider takes jobs, as last reported. Draining and away providers stay connected. */
import type { ReportedAvailability } from '@inference/protocol';

const SERVING: ReportedAvailability = { state: 'serving' };

export class SessionAvailability {
  #reported = SERVING;

  get reported(): ReportedAvailability {
    return this.#reported;
  }

  /** The provider takes no new jobs. */
  get isAway(): boolean {
    return this.#reported.state !== 'serving';
  }

  /** Stores a report, ignoring other members. True: the report differs from the last report. */
  update({ state, reason, until }: ReportedAvailability): boolean {
    const before = this.#reported;
    if (state === 'serving') this.#reported = SERVING;
    else this.#reported = { state, ...(reason === undefined ? {} : { reason }), ...(until === undefined ? {} : { until }) };
    return before.state !== this.#reported.state || before.reason !== this.#reported.reason || before.until !== this.#reported.until;
  }
}
