/**
 * What the rest of the coordinator sees of the ledger. Each step is one transaction: it happened wholly when its promise
 * resolves, and not at all or wholly when it rejects, so a step may always be repeated; the key it is idempotent by is named
 * at each. Amounts are whole micro-USD, times milliseconds since 1970.
 */
import type { Endpoint, JobId, ProviderId } from '@inference/protocol';
import type { DepositSource } from '../../database/tables/ledger.js';
import type { MicroUsd } from '../micro-usd.js';
import type { Price } from '../prices/price.js';

export interface Reservation {
  readonly jobId: JobId;
  readonly accountId: string;
  readonly apiKeyId: string;
  /** The most that jobs of this key may cost together, ever; null is no limit. */
  readonly keySpendLimit: MicroUsd | null;
  readonly model: string;
  readonly endpoint: Endpoint;
  readonly price: Price;
  readonly maxPromptTokens: number;
  readonly maxCompletionTokens: number;
  readonly images?: number;
  readonly at: number;
}

export type ReserveOutcome =
  | { readonly kind: 'reserved'; readonly amount: MicroUsd }
  | { readonly kind: 'insufficient_balance'; readonly needed: MicroUsd; readonly available: MicroUsd }
  | { readonly kind: 'key_limit_reached'; readonly needed: MicroUsd; readonly left: MicroUsd };

export interface Settlement {
  readonly jobId: JobId;
  readonly providerId: ProviderId;
  /** Counts, already held to {@link settlementBounds}. The ledger clamps them to the reservation once more. */
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Part of the completion tokens. */
  readonly hiddenTokens: number;
  /** Part of the prompt tokens. */
  readonly cachedTokens: number;
  readonly images?: number;
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
  /** What the account has, holds of running jobs included. */
  readonly balance: MicroUsd;
  readonly reserved: MicroUsd;
  /** Earnings that may be paid out: matured ones, never deposited money, never what running jobs hold. */
  readonly withdrawable: MicroUsd;
}

/** Earnings that have not matured. */
export interface PendingEarnings {
  readonly total: MicroUsd;
  /** The earliest first; `at` is when the amount matures. The amounts sum to `total`. */
  readonly maturing: readonly { readonly at: number; readonly amount: MicroUsd }[];
}

export interface Ledger {
  /**
   * Holds the most that a job can cost, against what the account has and no job holds, and against the key's spend limit.
   * Idempotent by job id while the job runs; rejects for a job that has ended.
   */
  reserve(reservation: Reservation): Promise<ReserveOutcome>;
  /** Charges a reserved job and frees the rest of its hold. Idempotent by job id. */
  settle(settlement: Settlement): Promise<SettleOutcome>;
  /** Frees a job's hold and charges nothing. False when there is none (unknown, settled or released before). */
  release(jobId: JobId, at: number): Promise<boolean>;
  /** Credits an account. Idempotent by event id. */
  deposit(deposit: Deposit): Promise<DepositOutcome>;
  /** Takes earnings out of a balance until they are paid or the request is rejected. Idempotent by id. */
  requestWithdrawal(request: WithdrawalRequest): Promise<WithdrawalOutcome>;
  /** Ends a requested withdrawal; a rejected one is credited again. */
  endWithdrawal(id: string, end: WithdrawalEnd, at: number): Promise<EndWithdrawalOutcome>;
  balance(accountId: string): Promise<Balance>;
  /** The part of an account's earnings that cannot be withdrawn yet. */
  pendingEarnings(accountId: string): Promise<PendingEarnings>;
  /**
   * Makes an account the one that a provider earns for, from now on. Earnings kept for a provider without an owner move to
   * it, with their place in the statistics; of those, what the account itself had paid from deposited money comes back as
   * deposited money. What it earned for an earlier owner stays with that one.
   */
  linkProvider(providerId: ProviderId, accountId: string, at: number): Promise<void>;
  /**
   * Releases holds that nothing will end any more: of this process when the job is not among its live ones and was reserved
   * before `olderThan` (milliseconds since 1970), and of coordinators that are gone. Resolves to how many.
   */
  sweep(liveJobs: ReadonlySet<JobId>, olderThan: number): Promise<number>;
  /** Ends waiting steps and the ledger's own timers. The database stays open. */
  close(): Promise<void>;
}
