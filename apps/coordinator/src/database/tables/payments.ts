/**
 * Money that comes from outside: deposits that were asked for, and what the payment processor told us about them. What was
 * really posted is in the ledger's own `deposits`, by the same id.
 */
import type { DepositSource } from './ledger.js';

export interface PaymentTables {
  deposit_orders: {
    id: string;
    account_id: string;
    amount_micro_usd: number;
    source: DepositSource;
    state: DepositOrderState;
    /** The processor's checkout and its payment, once known. */
    checkout_id: string | null;
    payment_id: string | null;
    created_at: number;
    ended_at: number | null;
    /** Of the amount, given back so far. */
    refunded_micro_usd: number;
    disputed_at: number | null;
  };
  /** Events of the processor that were handled, by its id. */
  payment_events: {
    id: string;
    type: string;
    deposit_id: string | null;
    outcome: string;
    received_at: number;
  };
  /** How a withdrawal is being ended. The first to claim decides, so that none is paid and rejected. */
  withdrawal_ends: { withdrawal_id: string; end: WithdrawalEndClaim; transfer_id: string | null; claimed_at: number };
  /** Where the processor pays an account's withdrawals to. */
  payout_accounts: { account_id: string; payout_id: string; created_at: number };
}

/** Only `open` deposits change: to `paid` (posted to the ledger), `expired` or `failed`. */
export type DepositOrderState = 'open' | 'paid' | 'expired' | 'failed';
export type WithdrawalEndClaim = 'paid' | 'rejected' | 'transfer';
