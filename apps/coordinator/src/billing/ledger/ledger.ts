/**
 * `Ledger` is the interface of the accounting system for balances, reservations, charges, deposits and withdrawals.
 *
 * Each call that moves money is atomic, and takes effect once if it is repeated with the same ids.
 *
 * Amounts are whole micro-USD, times are milliseconds since 1970.
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
  /** Maximum total cost of the key's jobs over its lifetime; null: no limit. */
  readonly keySpendLimit: MicroUsd | null;
  /** Maximum cost of the key's jobs per calendar period; null or absent: no limit. */
  readonly keyBudget?: KeyBudget | null;
  readonly model: string;
  readonly endpoint: Endpoint;
  /** For an image job, {@link imageRates} has adapted the price to the requested size. */
  readonly price: Price;
  readonly maxPromptTokens: number;
  readonly maxCompletionTokens: number;
  /** Number of images that an image job generates. */
  readonly images?: number;
  /** Nonce of a sealed (end-to-end encrypted) request, taken only if the reservation succeeds. */
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
      /** Reserved by running jobs of the key. */
      readonly reserved: MicroUsd;
      /** Start of the next period, in milliseconds since 1970. */
      readonly resetsAt: number;
    }
  /** Another job has already taken the nonce of the sealed request. Nothing is reserved. */
  | { readonly kind: 'replayed' };

export interface Settlement {
  readonly jobId: JobId;
  readonly providerId: ProviderId;
  /** Counts within `settlementBounds` (`prices/settlement-bounds.ts`). The ledger also limits them to the reservation. */
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Part of the completion tokens. */
  readonly hiddenTokens: number;
  /** Part of the prompt tokens. */
  readonly cachedTokens: number;
  readonly images?: number;
  /** Model that answered instead of the reserved one, with its price at the time of the reservation. */
  readonly served?: { readonly model: string; readonly price: Price };
  readonly at: number;
}

export type SettleOutcome =
  | { readonly kind: 'settled'; readonly cost: MicroUsd; readonly earned: MicroUsd; readonly fee: MicroUsd }
  | { readonly kind: 'already_settled'; readonly cost: MicroUsd }
  /** The reservation was released, or the credit lease that contained it (see `CreditLeases`). Nothing is charged. */
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
  /** Deposits and earnings, less charges and withdrawals. Includes reserved money and pending earnings. */
  readonly balance: MicroUsd;
  readonly reserved: MicroUsd;
  /** Matured earnings that are not reserved. Never includes deposited money. */
  readonly withdrawable: MicroUsd;
}

export interface PendingEarnings {
  readonly total: MicroUsd;
  /** Amounts with the time `at` when they mature, earliest first. Their sum is `total`. */
  readonly maturing: readonly { readonly at: number; readonly amount: MicroUsd }[];
}

export interface Ledger {
  /**
   * Reserves the maximum cost of a job, if the balance, and the spend limit and budget of the key, permit it.
   *
   * Idempotent by job id while the job runs. Rejects for a job that has ended.
   */
  reserve(reservation: Reservation): Promise<ReserveOutcome>;
  /** Takes the nonce of a sealed request that is free of charge. Resolves to false if another job has taken the nonce. */
  takeNonce(nonce: SealedNonce): Promise<boolean>;
  /** Charges a reserved job, and makes the rest of its reservation available again. */
  settle(settlement: Settlement): Promise<SettleOutcome>;
  /** Releases a reservation without a charge. Resolves to false if the job is unknown, settled or already released. */
  release(jobId: JobId, at: number): Promise<boolean>;
  /** Credits an account. Idempotent by event id. */
  deposit(deposit: Deposit): Promise<DepositOutcome>;
  /** Removes earnings from the balance. They return only if the withdrawal is rejected. Idempotent by withdrawal id. */
  requestWithdrawal(request: WithdrawalRequest): Promise<WithdrawalOutcome>;
  /** Ends a requested withdrawal. A rejection returns the amount to the balance. */
  endWithdrawal(id: string, end: WithdrawalEnd, at: number): Promise<EndWithdrawalOutcome>;
  balance(accountId: string): Promise<Balance>;
  /** Earnings that cannot be withdrawn yet, because they have not matured. */
  pendingEarnings(accountId: string): Promise<PendingEarnings>;
  /**
   * Links a provider to the account that receives its earnings from now on.
   *
   * Earnings that the provider made without an owner move to the account. Earnings of a previous owner stay with that owner.
   *
   * Of these earnings, the part that the account itself had paid from deposits becomes deposited money again.
   */
  linkProvider(providerId: ProviderId, accountId: string, at: number): Promise<void>;
  /**
   * Releases the reservations of dead coordinators, and own ones from before `reservedBefore` whose jobs are not in `liveJobs`.
   *
   * Resolves to the number of released reservations.
   */
  sweep(liveJobs: ReadonlySet<JobId>, reservedBefore: number): Promise<number>;
  /** Completes queued steps and stops the ledger's timers. The database stays open. */
  close(): Promise<void>;
}
