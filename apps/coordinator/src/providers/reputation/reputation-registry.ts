/**
 * `ReputationRegistry`: reputations of providers, for placement and routes. Inference reports outcomes through `ProviderConnection`.
 *
 * `ReputationStore` holds the state, and `reputation.ts` the rules.
 */
import type { ProviderId, RestrictionReason } from '@inference/protocol';
import type { OperatorQuarantine } from '../placement/quarantine.js';
import type { RestrictionMessage } from '../session/trust-message.js';
import { type Fault, type Reputation, type ReputationState, type Restriction, recentFailures, stateAt } from './reputation.js';
import { ReputationStore, type ReputationStoreOptions } from './reputation-store.js';

/** Times in milliseconds since 1970. */
export interface ReputationSummary {
  readonly state: ReputationState;
  /** Reason of the restriction, and a more exact code for operators. Null in state `well`. */
  readonly reason: RestrictionReason | null;
  readonly detail: string | null;
  /** Start of the restriction, and the time at which probation begins. */
  readonly since: number | null;
  readonly until: number | null;
  /** Recent failures, which make placement prefer other providers. */
  readonly recentFailures: number;
}

export type ReputationEvent =
  /** `reason`: the code of the fault (`detail`). `until`: end of the quarantine, in milliseconds since 1970. */
  | { readonly type: 'quarantined'; readonly providerId: ProviderId; readonly reason: string; readonly until: number }
  /** `until`: end of the cooldown, in milliseconds since 1970. */
  | { readonly type: 'cooling_down'; readonly providerId: ProviderId; readonly reason: RestrictionReason; readonly until: number }
  | { readonly type: 'reinstated'; readonly providerId: ProviderId };

interface ReputationRegistryOptions extends Omit<ReputationStoreOptions, 'max'> {
  readonly quarantineOf?: (providerId: ProviderId) => OperatorQuarantine | null;
  readonly onEvent: (event: ReputationEvent) => void;
  readonly onOutcome?: (providerId: ProviderId, hasFailed: boolean) => void;
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

  quarantineOf(providerId: ProviderId): OperatorQuarantine | null {
    return this.#options.quarantineOf?.(providerId) ?? null;
  }

  get(providerId: ProviderId): Reputation {
    return this.#store.get(providerId);
  }

  /** Providers that are restricted or on probation. */
  *restricted(): Iterable<[ProviderId, ReputationSummary]> {
    for (const [providerId] of this.#store.restricted()) yield [providerId, this.summaryOf(providerId)];
  }

  /** Whether the provider is restricted, or on probation, because an answer did not verify. */
  isDistrusted(providerId: ProviderId): boolean {
    return this.#store.get(providerId).restriction?.reason === 'answers_not_verified';
  }

  /** Returns the message for a provider that is restricted or on probation; otherwise null. */
  restrictionMessage(providerId: ProviderId): RestrictionMessage | null {
    const { state, reason, since, until } = this.summaryOf(providerId);
    return state === 'well' || reason === null || since === null || until === null ? null : { state, reason, since, until };
  }

  /** Records a job that failed by the provider's fault. `detail`: a more exact code. */
  recordFault(providerId: ProviderId, fault: Fault, detail: string): void {
    this.#options.onOutcome?.(providerId, true);
    this.#report(providerId, this.#store.faulted(providerId, fault, detail));
  }

  recordAnswer(providerId: ProviderId): void {
    this.#options.onOutcome?.(providerId, false);
    this.#store.answered(providerId);
  }

  /** Records that another attempt of the same job was faster. */
  recordSlowAnswer(providerId: ProviderId): void {
    this.#store.answeredSlowly(providerId);
  }

  /** Clears a reputation. Returns false, without a change, if the provider is neither restricted nor on probation. */
  reinstate(providerId: ProviderId): boolean {
    if (!this.#store.clear(providerId)) return false;
    this.#options.onEvent({ type: 'reinstated', providerId });
    return true;
  }

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
