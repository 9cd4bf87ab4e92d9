/** What earlier jobs of each enclave key mean for it now, connected or not: the reputations, in the words that the rest of the fleet uses. */
import type { ProviderId, RestraintReason } from '@inference/protocol';
import type { RestraintMessage } from '../trust-message.js';
import { type Fault, type Reputation, type ReputationState, type Restraint, recentFailures, stateAt } from './reputation.js';
import { ReputationBook, type ReputationBookOptions } from './reputation-book.js';

/** Times in milliseconds. */
export interface Standing {
  readonly state: ReputationState;
  /** Why, and for the operator the exact problem; null while it is well. */
  readonly reason: RestraintReason | null;
  readonly detail: string | null;
  /** Since when, and when one job decides. */
  readonly since: number | null;
  readonly until: number | null;
  /** Failures that still count; each makes other machines be preferred. */
  readonly recentFailures: number;
}

export type StandingEvent =
  | { readonly type: 'quarantined'; readonly providerId: ProviderId; readonly reason: string; readonly until: number }
  /** Jobs failed, and it is left alone until a time, in milliseconds. */
  | { readonly type: 'cooling_down'; readonly providerId: ProviderId; readonly reason: RestraintReason; readonly until: number }
  | { readonly type: 'reinstated'; readonly providerId: ProviderId };

export interface StandingsOptions extends Omit<ReputationBookOptions, 'max'> {
  readonly onEvent: (event: StandingEvent) => void;
}

export class Standings {
  readonly #options: StandingsOptions;
  readonly #book: ReputationBook;

  constructor(options: StandingsOptions) {
    this.#options = options;
    this.#book = new ReputationBook(options);
  }

  of(providerId: ProviderId): Standing {
    const now = this.#options.now();
    const reputation = this.#book.of(providerId);
    const { reason = null, detail = null, since = null, until = null } = reputation.restraint ?? {};
    return { state: stateAt(reputation, now), reason, detail, since, until, recentFailures: recentFailures(reputation, now) };
  }

  /** What placement goes by. */
  reputation(providerId: ProviderId): Reputation {
    return this.#book.of(providerId);
  }

  /** Keys that are held back or on trial. */
  *restrained(): Iterable<[ProviderId, Standing]> {
    for (const [providerId] of this.#book.restrained()) yield [providerId, this.of(providerId)];
  }

  /** Whether it is on trial after a lie. */
  isDistrusted(providerId: ProviderId): boolean {
    return this.#book.of(providerId).restraint?.reason === 'answers_not_verified';
  }

  /** What a provider that is held back or on trial is told; null: it is neither. */
  messageFor(providerId: ProviderId): RestraintMessage | null {
    const { state, reason, since, until } = this.of(providerId);
    return state === 'well' || reason === null || since === null || until === null ? null : { state, reason, since, until };
  }

  /** A job went wrong by the provider's fault. `detail`: the exact problem, a code. */
  faulted(providerId: ProviderId, fault: Fault, detail: string): void {
    this.#report(providerId, this.#book.faulted(providerId, fault, detail));
  }

  /** An answer of the provider verified. */
  answered(providerId: ProviderId): void {
    this.#book.answered(providerId);
  }

  /** Another machine was quicker with the first content of a job. */
  late(providerId: ProviderId): void {
    this.#book.late(providerId);
  }

  /** Lets a key that is held back take jobs again, and forgets why. False when it was not. */
  reinstate(providerId: ProviderId): boolean {
    if (!this.#book.clear(providerId)) return false;
    this.#options.onEvent({ type: 'reinstated', providerId });
    return true;
  }

  /** Takes in what jobs of a key came to on another coordinator. */
  takeUp(providerId: ProviderId, reputation: Reputation): void {
    this.#book.takeUp(providerId, reputation);
  }

  close(): void {
    this.#book.close();
  }

  #report(providerId: ProviderId, restraint: Restraint | null): void {
    if (restraint === null) return;
    const { kind, reason, detail, until } = restraint;
    if (kind === 'quarantine') this.#options.onEvent({ type: 'quarantined', providerId, reason: detail, until });
    else this.#options.onEvent({ type: 'cooling_down', providerId, reason, until });
  }
}
