/**
 * Whether a provider takes jobs, by its own word: what it told last. One that is leaving or away stays connected, and placement goes
 * around it.
 */
import type { ToldAvailability } from '@inference/protocol';

const SERVING: ToldAvailability = { state: 'serving' };

export class SessionAvailability {
  #told = SERVING;

  get told(): ToldAvailability {
    return this.#told;
  }

  /** It takes no new jobs. */
  get away(): boolean {
    return this.#told.state !== 'serving';
  }

  /** Takes in what it says now, of which only these members count. Whether that is another thing than before. */
  take({ state, reason, until }: ToldAvailability): boolean {
    const before = this.#told;
    if (state === 'serving') this.#told = SERVING;
    else this.#told = { state, ...(reason === undefined ? {} : { reason }), ...(until === undefined ? {} : { until }) };
    return before.state !== this.#told.state || before.reason !== this.#told.reason || before.until !== this.#told.until;
  }
}
