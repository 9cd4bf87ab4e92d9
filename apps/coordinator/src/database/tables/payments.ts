/** Payments: deposit orders and the processor's reports. Posted deposits are in the ledger's `deposits`, with the same id. */
import type { DepositSource } from './ledger.js';

export interface PaymentTables {
  deposit_orders: {
    id: string;
    account_id: string;
    amount_micro_usd: number;
    source: DepositSource;
    state: DepositOrderState;
    /** Ids of the processor's checkout and payment, once known. */
    checkout_id: string | null;
    payment_id: string | null;
    created_at: number;
    ended_at: number | null;
    /** Refunded part of the amount. */
    refunded_micro_usd: number;
    disputed_at: number | null;
  };
  /** Handled events of the processor, by its id. */
  payment_events: {
    id: string;
    type: string;
    deposit_id: string | null;
    outcome: string;
    received_at: number;
  };
  /** Claimed ends of withdrawals. The first claim wins, so no withdrawal is both paid and rejected. */
  withdrawal_ends: { withdrawal_id: string; end: WithdrawalEndClaim; transfer_id: string | null; claimed_at: number };
  /** Account at the processor to which an account's withdrawals are paid. */
  payout_accounts: { account_id: string; payout_id: string; created_at: number };
  /** Details that the account wants on receipts; deleted with the account. */
  billing_details: { account_id: string; name: string | null; address: string | null; tax_id: string | null };
}

/** Only `open` deposits change: to `paid` (posted to the ledger), `expired` or `failed`. */
export type DepositOrderState = 'open' | 'paid' | 'expired' | 'failed';
export type WithdrawalEndClaim = 'paid' | 'rejected' | 'transfer';
