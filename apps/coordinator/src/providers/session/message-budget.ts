/** `MessageBudget` limits the messages of one session that advance no job. `ProviderSession` rejects a provider above the limit. */
import type { ProviderMessage } from '@inference/protocol';

/** Budget of a burst, and budget regained per second, both in message costs. */
const BURST = 4000;
const PER_SECOND = 200;

/** Cost of messages that advance no job: higher where a signature is verified or the model index changes. */
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

  /** Spends the cost of one message; a plain message costs 1. False: the budget is exceeded. */
  spend(cost: number): boolean {
    const now = this.#now();
    this.#left = Math.min(BURST, this.#left + (Math.max(0, now - this.#at) * PER_SECOND) / 1000);
    this.#at = now;
    this.#left -= cost;
    return this.#left >= 0;
  }
}
