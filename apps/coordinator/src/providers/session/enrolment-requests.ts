/** `EnrolmentRequests` handles a provider's requests to enrol in device management, one at a time. Part of `ProviderSession`. */
import type { CoordinatorMessage, EnrolmentRefusal } from '@inference/protocol';
import type { Identity } from './registration/admission.js';

type EnrolmentAnswer =
  | { readonly kind: 'offered'; readonly url: string; readonly expiresAt: number }
  | { readonly kind: 'refused'; readonly reason: EnrolmentRefusal };

/** Answers a request for a verified identity. Must settle, see `withinDeadline`. If the promise rejects, the provider is asked to try later. */
export type EnrolmentService = (identity: Identity) => Promise<EnrolmentAnswer>;

/** Minimum interval between requests of a session. Each request inserts and voids database rows. */
const MIN_INTERVAL_MS = 5000;

export class EnrolmentRequests {
  readonly #service: EnrolmentService;
  readonly #now: () => number;
  #openAgainAt = 0;

  constructor(service: EnrolmentService, now: () => number) {
    this.#service = service;
    this.#now = now;
  }

  /** Returns the message to send as the answer. Never rejects. */
  async answer(identity: Identity): Promise<CoordinatorMessage> {
    if (this.#now() < this.#openAgainAt) return refusal('try_later');
    this.#openAgainAt = Number.POSITIVE_INFINITY;
    try {
      const answer = await this.#service(identity);
      return answer.kind === 'refused' ? refusal(answer.reason) : { type: 'enrolment', url: answer.url, expires_at: answer.expiresAt };
    } catch {
      return refusal('try_later');
    } finally {
      this.#openAgainAt = this.#now() + MIN_INTERVAL_MS;
    }
  }
}

function refusal(reason: EnrolmentRefusal): CoordinatorMessage {
  return { type: 'enrolment_refused', reason };
}
