/**
 * `Ledger`: interface of the ledger. Each step is one transaction, and repeatable by the idempotency key in its comment.
 *
 * Amounts are whole micro-USD, times milliseconds since 1970.
 */
import type { Endpoint, JobId, ProviderId } from '@inference/protocol';
import type { KeyBudget } from '../../database/ledger/key-budget.js';
import type { SealedNonce } from '../../database/sealed-nonce-repository.js';
import type { DepositSource } from '../../database/tables/ledger.js';
import type { MicroUsd } from '../micro-usd.js';
import type { Price } from '../prices/price.js';

export interface Reservation {
  readonly jobId: JobId;
  readonly accountId: string;
  readonly apiKeyId: string;
  /** Maximum sum of the costs of the key's jobs, over its lifetime; null: no limit. */
  readonly keySpendLimit: MicroUsd | null;
  /** Maximum sum of the costs of the key's jobs in a calendar period; left out or null: none. */
  readonly keyBudget?: KeyBudget | null;
  readonly model: string;
  readonly endpoint: Endpoint;
  readonly price: Price;
  readonly maxPromptTokens: number;
  readonly maxCompletionTokens: number;
  readonly images?: number;
  /** Of a sealed request: taken together with the reservation, or not at all. */
  readonly nonce?: SealedNonce;
  readonly at: number;
}

export type ReserveOutcome =
  | { readonly kind: 'reserved'; readonly amount: MicroUsd }
  | { readonly kind: 'insufficient_balance'; readonly needed: MicroUsd; readonly available: MicroUsd }
  | { readonly kind: 'key_limit_reached'; readonly needed: MicroUsd; readonly left: MicroUsd }
  | {
      readonly kind: 'key_budget_exceeded';
      readonly needed: MicroUsd;
      readonly budget: KeyBudget;
      /** Spent in the current period. */
      readonly spent: MicroUsd;
      /** Reserved by the key's running jobs. */
      readonly reserved: MicroUsd;
      /** Start of the next period, in milliseconds since 1970. */
      readonly resetsAt: number;
    }
  /** Another job took the nonce of the sealed request before. Nothing is reserved. */
  | { readonly kind: 'replayed' };

export interface Settlement {
  readonly jobId: JobId;
  readonly providerId: ProviderId;
  /** Counts after {@link settlementBounds}. The ledger also clamps them to the reservation. */
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Part of the completion tokens. */
  readonly hiddenTokens: number;
  /** Part of the prompt tokens. */
  readonly cachedTokens: number;
  readonly images?: number;
  /** Model that answered instead of the reserved model, with its price at the reservation. Absent: the reserved model. */
  readonly served?: { readonly model: string; readonly price: Price };
  readonly at: number;
}

export type SettleOutcome =
  | { readonly kind: 'settled'; readonly cost: MicroUsd; readonly earned: MicroUsd; readonly fee: MicroUsd }
  | { readonly kind: 'already_settled'; readonly cost: MicroUsd }
  | { readonly kind: 'released_before' }
  | { readonly kind: 'unknown_job' };

export interface Deposit {
  readonly eventId: string;
  readonly accountId: string;
  readonly amount: MicroUsd;
  readonly source: DepositSource;
  readonly at: number;
}
export type DepositOutcome = { readonly kind: 'deposited' | 'already_deposited' };

export interface WithdrawalRequest {
  readonly id: string;
  readonly accountId: string;
  readonly amount: MicroUsd;
  readonly at: number;
}
export type WithdrawalOutcome = { readonly kind: 'requested' } | { readonly kind: 'insufficient'; readonly withdrawable: MicroUsd };

export type WithdrawalEnd = 'paid' | 'rejected';
export type EndWithdrawalOutcome =
  | { readonly kind: 'ended' }
  | { readonly kind: 'already_ended'; readonly end: WithdrawalEnd }
  | { readonly kind: 'unknown_withdrawal' };

export interface Balance {
  /** Total of the account, reservations of running jobs included. */
  readonly balance: MicroUsd;
  readonly reserved: MicroUsd;
  /** Earnings that can be paid out: matured, never deposited money, never reserved. */
  readonly withdrawable: MicroUsd;
}

export interface PendingEarnings {
  readonly total: MicroUsd;
  /** The earliest first; `at` is when the amount matures. The amounts sum to `total`. */
  readonly maturing: readonly { readonly at: number; readonly amount: MicroUsd }[];
}

export interface Ledger {
  /**
   * Reserves the maximum cost of a job against the available balance, and the key's spend limit and budget.
   *
   * Idempotent by job id while the job runs; rejects for an ended job.
   */
  reserve(reservation: Reservation): Promise<ReserveOutcome>;
  /** Takes the nonce of a free sealed request. False: taken by another job. Idempotent by job id. */
  takeNonce(nonce: SealedNonce): Promise<boolean>;
  /** Charges a reserved job and releases the rest of its reservation. Idempotent by job id. */
  settle(settlement: Settlement): Promise<SettleOutcome>;
  /** Releases a job's reservation without a charge. False if nothing is reserved: unknown, settled or released before. */
  release(jobId: JobId, at: number): Promise<boolean>;
  /** Credits an account. Idempotent by event id. */
  deposit(deposit: Deposit): Promise<DepositOutcome>;
  /** Moves earnings out of a balance until the withdrawal is paid or rejected. Idempotent by id. */
  requestWithdrawal(request: WithdrawalRequest): Promise<WithdrawalOutcome>;
  /** Ends a requested withdrawal; a rejected withdrawal is credited again. */
  endWithdrawal(id: string, end: WithdrawalEnd, at: number): Promise<EndWithdrawalOutcome>;
  balance(accountId: string): Promise<Balance>;
  /** Earnings of an account that cannot be withdrawn yet. */
  pendingEarnings(accountId: string): Promise<PendingEarnings>;
  /**
   * Links a provider to the account that the provider earns for from now on.
   *
   * Earnings of an unowned provider move to the account, with their statistics. Money that the account itself had paid from
   * deposits returns as deposited money. Earnings for an earlier owner stay with that owner.
   */
  linkProvider(providerId: ProviderId, accountId: string, at: number): Promise<void>;
  /**
   * Releases reservations of dead coordinators, and own ones from before `olderThan` (milliseconds since 1970) outside `liveJobs`. Resolves
   * to their number.
   */
  sweep(liveJobs: ReadonlySet<JobId>, olderThan: number): Promise<number>;
  /** Ends waiting steps and the ledger's own timers. The database stays open. */
  close(): Promise<void>;
}
