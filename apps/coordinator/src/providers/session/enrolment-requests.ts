/**
 * A provider asks for a device-management enrolment over its session. Who answers lies outside the fleet; here is what is
 * asked, what comes back, and that one session asks one thing at a time.
 */
import type { CoordinatorMessage, EnrolmentRefusal } from '@inference/protocol';
import type { Identity } from './registration/admission.js';

export type EnrolmentAnswer =
  | { readonly kind: 'offered'; readonly url: string; readonly expiresAt: number }
  | { readonly kind: 'refused'; readonly reason: EnrolmentRefusal };

/** Answers for an identity that a session has proved. May reject; the provider is then told to try later. */
export type EnrolmentService = (identity: Identity) => Promise<EnrolmentAnswer>;

/** Pause between two requests of one session, in milliseconds: each makes and voids rows in the database. */
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
