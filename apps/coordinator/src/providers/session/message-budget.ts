/**
 * `MessageBudget`: token bucket for pings and for messages that are not part of an answer. `ProviderSession` closes a session that
 * exceeds it.
 */
import type { ProviderMessage } from '@inference/protocol';

/** Size of the bucket. The unit is the cost of a simple message. */
const BURST = 4000;
/** Refill per second. */
const PER_SECOND = 200;

/** Cost per message type. Messages without an entry are free unless they belong to no known job. */
export const MESSAGE_COSTS: Partial<Record<ProviderMessage['type'], number>> = {
  load: 1,
  job_progress: 1,
  draining: 1,
  availability: 10,
  models: 10,
  enrolment_request: 20,
  key_update: 20,
  link: 20,
  machine_settings: 10,
  owner_command_result: 10,
};

export class MessageBudget {
  readonly #now: () => number;
  #left = BURST;
  #at: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#at = now();
  }

  /** Spends the cost of one message. False: the budget is exceeded. */
  spend(cost: number): boolean {
    const now = this.#now();
    this.#left = Math.min(BURST, this.#left + (Math.max(0, now - this.#at) * PER_SECOND) / 1000);
    this.#at = now;
    this.#left -= cost;
    return this.#left >= 0;
  }
}
