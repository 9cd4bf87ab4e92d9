/**
 * `Withdrawals`: owners request them in the console, and an operator ends each: paid by hand, transferred by the processor, or rejected.
 *
 * Before a withdrawal ends, the kind of its end is stored (the claim). A later call with another kind is refused, so that no withdrawal is
 * both paid and rejected. Only a transfer that the processor refused removes the claim.
 */
import { randomUUID } from 'node:crypto';
import type { PaymentRepository, Withdrawal } from '../../database/payment-repository.js';
import type { WithdrawalEndClaim } from '../../database/tables/payments.js';
import type { Ledger, WithdrawalOutcome } from '../ledger/ledger.js';
import { microUsd } from '../micro-usd.js';
import { centsOf, type PaymentProcessor, TransferRefused } from './payment-processor.js';

export type EndOutcome =
  | { readonly kind: 'ended'; readonly withdrawal: Withdrawal }
  | { readonly kind: 'unknown' }
  /** An earlier call has claimed another kind of end. */
  | { readonly kind: 'otherwise_ended'; readonly end: WithdrawalEndClaim }
  /** The owner has no payout account, or the amount is not whole cents. No end is claimed. */
  | { readonly kind: 'no_payout_account' }
  /** The processor refused the transfer. The claim is removed, so that a later call is a new attempt. */
  | { readonly kind: 'transfer_refused' };

export class Withdrawals {
  readonly #payments: PaymentRepository;
  readonly #ledger: Pick<Ledger, 'requestWithdrawal' | 'endWithdrawal'>;
  readonly #now: () => number;

  constructor(options: { payments: PaymentRepository; ledger: Pick<Ledger, 'requestWithdrawal' | 'endWithdrawal'>; now: () => number }) {
    this.#payments = options.payments;
    this.#ledger = options.ledger;
    this.#now = options.now;
  }

  /** Requests a withdrawal, and removes the amount from the balance at once. `amount` is in micro-USD, of whole cents. */
  async request(accountId: string, amount: number): Promise<{ readonly id: string; readonly outcome: WithdrawalOutcome }> {
    const id = randomUUID();
    return { id, outcome: await this.#ledger.requestWithdrawal({ id, accountId, amount: microUsd(amount), at: this.#now() }) };
  }

  /** Marks a withdrawal as paid by hand, or rejects the withdrawal, which returns the amount to the balance. */
  async end(id: string, end: 'paid' | 'rejected'): Promise<EndOutcome> {
    const withdrawal = await this.#payments.findWithdrawal(id);
    return withdrawal === null ? { kind: 'unknown' } : this.#end(withdrawal, end, async () => null);
  }

  /** Pays a withdrawal through the processor, at most once however often called. If the promise rejects, the result is unknown. */
  async transfer(id: string, processor: PaymentProcessor): Promise<EndOutcome> {
    const withdrawal = await this.#payments.findWithdrawal(id);
    if (withdrawal === null) return { kind: 'unknown' };
    if (withdrawal.state !== 'requested') return this.#end(withdrawal, 'transfer', async () => null);
    const payoutId = await this.#payments.findPayoutAccount(withdrawal.accountId);
    const cents = centsOf(withdrawal.amount);
    // Checked before the claim, which must not be removed later: a concurrent call with the same claim may already be paying.
    if (payoutId === null || cents === null) return { kind: 'no_payout_account' };
    return this.#end(withdrawal, 'transfer', async (claimedAt) => {
      try {
        await this.#payments.noteTransfer(id, await processor.transfer({ withdrawalId: id, claimedAt, payoutId, cents }));
        return null;
      } catch (error) {
        if (!(error instanceof TransferRefused)) throw error;
        return { kind: 'transfer_refused' };
      }
    });
  }

  /** Claims the end, pays, and posts to the ledger. `pay` resolves to null, or to the outcome of a refused payment. */
  async #end(withdrawal: Withdrawal, end: WithdrawalEndClaim, pay: (claimedAt: number) => Promise<EndOutcome | null>): Promise<EndOutcome> {
    const { id } = withdrawal;
    const claim = await this.#payments.claimEnd(id, end, this.#now());
    if (claim.end !== end) return { kind: 'otherwise_ended', end: claim.end };
    if (withdrawal.state === 'requested') {
      const refused = await pay(claim.claimedAt);
      if (refused !== null) {
        await this.#payments.dropClaim(id, claim.claimedAt);
        return refused;
      }
      await this.#ledger.endWithdrawal(id, end === 'rejected' ? 'rejected' : 'paid', this.#now());
    }
    return { kind: 'ended', withdrawal: (await this.#payments.findWithdrawal(id)) ?? withdrawal };
  }
}
