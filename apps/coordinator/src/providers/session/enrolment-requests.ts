/** `EnrolmentRequests` answers a provider's requests for a device-management enrolment, one at a time per session. */
import type { CoordinatorMessage, EnrolmentRefusal } from '@inference/protocol';
import type { Identity } from './registration/admission.js';

type EnrolmentAnswer =
  | { readonly kind: 'offered'; readonly url: string; readonly expiresAt: number }
  | { readonly kind: 'refused'; readonly reason: EnrolmentRefusal };

/** Answers for an identity that its session has verified. May reject; the provider is then asked to try later. */
export type EnrolmentService = (identity: Identity) => Promise<EnrolmentAnswer>;

/** Minimum interval between two requests of one session, in milliseconds: each request inserts and voids database rows. */
const MIN_INTERVAL_MS = 5000;

/** The requests of one session. */
export class EnrolmentRequests {
  readonly #service: EnrolmentService;
  readonly #now: () => number;
  #openAgainAt = 0;

  constructor(service: EnrolmentService, now: () => number) {
    this.#service = service;
    this.#now = now;
  }

  /** The message to send in answer. Never rejects. */
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
