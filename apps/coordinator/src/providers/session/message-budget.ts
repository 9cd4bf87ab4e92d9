/**
 * What a provider may say that brings no job forward: reports, lists, keys, pings, and words on jobs that are not its own. An
 * honest one needs a fraction of it; one that floods is shut out before it costs the others anything.
 */
import type { ProviderMessage } from '@inference/protocol';

/** Messages that may come at once, and that are forgiven in each second. */
const BURST = 4000;
const PER_SECOND = 200;

/** What messages that bring no job forward cost of a provider's budget: more where a signature is checked or the boards change. */
export const MESSAGE_COSTS: Partial<Record<ProviderMessage['type'], number>> = {
  load: 1,
  job_progress: 1,
  draining: 1,
  availability: 10,
  models: 10,
  enrolment_request: 20,
  key_update: 20,
  link: 20,
};

export class MessageBudget {
  readonly #now: () => number;
  #left = BURST;
  #at: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#at = now();
  }

  /** Counts a message by what it costs to take in, a plain one being 1. False: it is one too many. */
  spend(cost: number): boolean {
    const now = this.#now();
    this.#left = Math.min(BURST, this.#left + (Math.max(0, now - this.#at) * PER_SECOND) / 1000);
    this.#at = now;
    this.#left -= cost;
    return this.#left >= 0;
  }
}
