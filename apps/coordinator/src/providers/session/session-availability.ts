/**
 * Whether a provider takes jobs, by its own word: what it told last. One that is leaving or away stays connected, and placement goes
 * around it.
 */
import type { ReportedAvailability } from '@inference/protocol';

const SERVING: ReportedAvailability = { state: 'serving' };

export class SessionAvailability {
  #reported = SERVING;

  get reported(): ReportedAvailability {
    return this.#reported;
  }

  /** It takes no new jobs. */
  get isAway(): boolean {
    return this.#reported.state !== 'serving';
  }

  /** Takes in what it says now, of which only these members count. Whether that is another thing than before. */
  update({ state, reason, until }: ReportedAvailability): boolean {
    const before = this.#reported;
    if (state === 'serving') this.#reported = SERVING;
    else this.#reported = { state, ...(reason === undefined ? {} : { reason }), ...(until === undefined ? {} : { until }) };
    return before.state !== this.#reported.state || before.reason !== this.#reported.reason || before.until !== this.#reported.until;
  }
}
