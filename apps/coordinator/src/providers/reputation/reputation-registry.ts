/** What earlier jobs of each enclave key mean for it now, connected or not: the reputations, in the words that the rest of the fleet uses. */
import type { ProviderId, RestrictionReason } from '@inference/protocol';
import type { OperatorQuarantine } from '../placement/quarantine.js';
import type { RestrictionMessage } from '../session/trust-message.js';
import { type Fault, type Reputation, type ReputationState, type Restriction, recentFailures, stateAt } from './reputation.js';
import { ReputationStore, type ReputationStoreOptions } from './reputation-store.js';

/** Times in milliseconds. */
export interface ReputationSummary {
  readonly state: ReputationState;
  /** Why, and for the operator the exact problem; null while it is well. */
  readonly reason: RestrictionReason | null;
  readonly detail: string | null;
  /** Since when, and when one job decides. */
  readonly since: number | null;
  readonly until: number | null;
  /** Failures that still count; each makes other machines be preferred. */
  readonly recentFailures: number;
}

export type ReputationEvent =
  | { readonly type: 'quarantined'; readonly providerId: ProviderId; readonly reason: string; readonly until: number }
  /** Jobs failed, and it is left alone until a time, in milliseconds. */
  | { readonly type: 'cooling_down'; readonly providerId: ProviderId; readonly reason: RestrictionReason; readonly until: number }
  | { readonly type: 'reinstated'; readonly providerId: ProviderId };

export interface ReputationRegistryOptions extends Omit<ReputationStoreOptions, 'max'> {
  /** Providers that an operator took out of routing. Left out: none. */
  readonly quarantineOf?: (providerId: ProviderId) => OperatorQuarantine | null;
  readonly onEvent: (event: ReputationEvent) => void;
}

export class ReputationRegistry {
  readonly #options: ReputationRegistryOptions;
  readonly #store: ReputationStore;

  constructor(options: ReputationRegistryOptions) {
    this.#options = options;
    this.#store = new ReputationStore(options);
  }

  summaryOf(providerId: ProviderId): ReputationSummary {
    const now = this.#options.now();
    const reputation = this.#store.get(providerId);
    const { reason = null, detail = null, since = null, until = null } = reputation.restriction ?? {};
    return { state: stateAt(reputation, now), reason, detail, since, until, recentFailures: recentFailures(reputation, now) };
  }

  /** Why an operator took a provider out of routing, or null. */
  quarantineOf(providerId: ProviderId): OperatorQuarantine | null {
    return this.#options.quarantineOf?.(providerId) ?? null;
  }

  /** What placement goes by. */
  get(providerId: ProviderId): Reputation {
    return this.#store.get(providerId);
  }

  /** Keys that are held back or on trial. */
  *restricted(): Iterable<[ProviderId, ReputationSummary]> {
    for (const [providerId] of this.#store.restricted()) yield [providerId, this.summaryOf(providerId)];
  }

  /** Whether it is on trial after a lie. */
  isDistrusted(providerId: ProviderId): boolean {
    return this.#store.get(providerId).restriction?.reason === 'answers_not_verified';
  }

  /** What a provider that is held back or on trial is told; null: it is neither. */
  restrictionMessage(providerId: ProviderId): RestrictionMessage | null {
    const { state, reason, since, until } = this.summaryOf(providerId);
    return state === 'well' || reason === null || since === null || until === null ? null : { state, reason, since, until };
  }

  /** A job went wrong by the provider's fault. `detail`: the exact problem, a code. */
  recordFault(providerId: ProviderId, fault: Fault, detail: string): void {
    this.#report(providerId, this.#store.faulted(providerId, fault, detail));
  }

  /** An answer of the provider verified. */
  recordAnswer(providerId: ProviderId): void {
    this.#store.answered(providerId);
  }

  /** Another machine was quicker with the first content of a job. */
  recordSlowAnswer(providerId: ProviderId): void {
    this.#store.late(providerId);
  }

  /** Lets a key that is held back take jobs again, and forgets why. False when it was not. */
  reinstate(providerId: ProviderId): boolean {
    if (!this.#store.clear(providerId)) return false;
    this.#options.onEvent({ type: 'reinstated', providerId });
    return true;
  }

  /** Takes in what jobs of a key came to on another coordinator. */
  adopt(providerId: ProviderId, reputation: Reputation): void {
    this.#store.adopt(providerId, reputation);
  }

  close(): void {
    this.#store.close();
  }

  #report(providerId: ProviderId, restriction: Restriction | null): void {
    if (restriction === null) return;
    const { kind, reason, detail, until } = restriction;
    if (kind === 'quarantine') this.#options.onEvent({ type: 'quarantined', providerId, reason: detail, until });
    else this.#options.onEvent({ type: 'cooling_down', providerId, reason, until });
  }
}
