/** Types of the tables of payments. A paid order is also a row of the ledger's table `deposits`, with the same id. */
import type { DepositSource } from './ledger.js';

export interface PaymentTables {
  deposit_orders: {
    id: string;
    account_id: string;
    amount_micro_usd: number;
    source: DepositSource;
    state: DepositOrderState;
    /** Id of the processor's checkout; null: not opened yet, or none needed. */
    checkout_id: string | null;
    /** Id of the processor's payment; null: unknown. */
    payment_id: string | null;
    created_at: number;
    ended_at: number | null;
    refunded_micro_usd: number;
    disputed_at: number | null;
  };
  /** Handled events of the processor, by the event's id. */
  payment_events: { id: string; type: string; deposit_id: string | null; outcome: string; received_at: number };
  /** How a withdrawal ends, stored before it does (the claim). The first claim wins, so that no withdrawal is both paid and rejected. */
  withdrawal_ends: { withdrawal_id: string; end: WithdrawalEndClaim; transfer_id: string | null; claimed_at: number };
  /** Account at the processor (`payout_id`) to which an account's withdrawals are paid. */
  payout_accounts: { account_id: string; payout_id: string; created_at: number };
  /** Details for the deposit receipts of an account. Deleted with the account. */
  billing_details: { account_id: string; name: string | null; address: string | null; tax_id: string | null };
}

/** An `open` order becomes `paid` (credited in the ledger), `expired` or `failed`. A late payment makes any order `paid`. */
export type DepositOrderState = 'open' | 'paid' | 'expired' | 'failed';
export type WithdrawalEndClaim = 'paid' | 'rejected' | 'transfer';
