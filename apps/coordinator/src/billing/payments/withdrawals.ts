/**
 * Withdrawals: asked for by those whose machines earned, ended by the operator. However many operators end one at a time,
 * and however often one of them repeats it, it is paid at most once and never both paid and rejected.
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
  /** Someone else is ending it, or ended it, in another way. */
  | { readonly kind: 'otherwise_ended'; readonly end: WithdrawalEndClaim }
  | { readonly kind: 'no_payout_account' }
  | { readonly kind: 'transfer_refused' };

export class Withdrawals {
  readonly #book: PaymentRepository;
  readonly #ledger: Pick<Ledger, 'requestWithdrawal' | 'endWithdrawal'>;
  readonly #now: () => number;

  constructor(options: { book: PaymentRepository; ledger: Pick<Ledger, 'requestWithdrawal' | 'endWithdrawal'>; now: () => number }) {
    this.#book = options.book;
    this.#ledger = options.ledger;
    this.#now = options.now;
  }

  /** Asks for earnings to be paid out; they leave the balance at once. `amount` is micro-USD in whole cents. */
  async request(accountId: string, amount: number): Promise<{ readonly id: string; readonly outcome: WithdrawalOutcome }> {
    const id = randomUUID();
    return { id, outcome: await this.#ledger.requestWithdrawal({ id, accountId, amount: microUsd(amount), at: this.#now() }) };
  }

  /** Says that it was paid, or rejects it. */
  async end(id: string, end: 'paid' | 'rejected'): Promise<EndOutcome> {
    return this.#end(id, end, async () => null);
  }

  /** Pays it through the processor. Rejects when the processor cannot be reached: then repeat it. */
  async transfer(id: string, processor: PaymentProcessor): Promise<EndOutcome> {
    return this.#end(id, 'transfer', async (withdrawal) => {
      const payoutId = await this.#book.findPayoutAccount(withdrawal.accountId);
      const cents = centsOf(withdrawal.amount);
      if (payoutId === null || cents === null) return { kind: 'no_payout_account' };
      try {
        await this.#book.noteTransfer(id, await processor.transfer({ withdrawalId: id, payoutId, cents }));
        return null;
      } catch (error) {
        if (!(error instanceof TransferRefused)) throw error;
        return { kind: 'transfer_refused' };
      }
    });
  }

  async #end(id: string, end: WithdrawalEndClaim, act: (withdrawal: Withdrawal) => Promise<EndOutcome | null>): Promise<EndOutcome> {
    const withdrawal = await this.#book.findWithdrawal(id);
    if (withdrawal === null) return { kind: 'unknown' };
    const claim = await this.#book.claimEnd(id, end, this.#now());
    if (claim !== end) return { kind: 'otherwise_ended', end: claim };
    if (withdrawal.state === 'requested') {
      const refused = await act(withdrawal);
      if (refused !== null) {
        await this.#book.dropClaim(id);
        return refused;
      }
      await this.#ledger.endWithdrawal(id, end === 'rejected' ? 'rejected' : 'paid', this.#now());
    }
    return { kind: 'ended', withdrawal: (await this.#book.findWithdrawal(id)) ?? withdrawal };
  }
}
