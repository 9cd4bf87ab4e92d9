/**
 * `Deposits` opens checkouts, and credits each paid order once, although payment events may be repeated or out of order.
 *
 * A refund or dispute suspends the account for review, and never reduces the balance.
 */
import { randomUUID } from 'node:crypto';
import type { AccountRepository } from '../../database/accounts/account-repository.js';
import type { DepositOrder, PaymentRepository } from '../../database/payment-repository.js';
import type { Ledger } from '../ledger/ledger.js';
import { microUsd } from '../micro-usd.js';
import { centsOf, microUsdOfCents, type PaymentEvent, type PaymentEventContent, type PaymentProcessor } from './payment-processor.js';

interface DepositsOptions {
  readonly payments: PaymentRepository;
  readonly ledger: Pick<Ledger, 'deposit'>;
  readonly accounts: AccountRepository;
  readonly now: () => number;
}

/** Result of a payment event. */
type EventOutcome =
  /** The deposit was credited. */
  | 'posted'
  /** The order was marked as expired or failed, unless it had already ended. */
  | 'noted'
  /** The account was suspended for review. */
  | 'flagged'
  /** The event was handled before. */
  | 'replayed'
  /** The payment differs from its order. Nothing was credited. */
  | 'mismatch'
  | 'unknown_order'
  | 'ignored';

type OpenOutcome =
  | { readonly kind: 'opened'; readonly order: DepositOrder; readonly url: string }
  | { readonly kind: 'failed'; readonly error: unknown };

export class Deposits {
  readonly #payments: PaymentRepository;
  readonly #ledger: Pick<Ledger, 'deposit'>;
  readonly #accounts: AccountRepository;
  readonly #now: () => number;

  constructor(options: DepositsOptions) {
    this.#payments = options.payments;
    this.#ledger = options.ledger;
    this.#accounts = options.accounts;
    this.#now = options.now;
  }

  /** Opens a checkout for `amount` micro-USD, which must be whole cents. The customer returns to `pageUrl` with a query parameter. */
  async open(
    processor: PaymentProcessor,
    customer: { readonly accountId: string; readonly email: string },
    amount: number,
    pageUrl: string,
  ): Promise<OpenOutcome> {
    const cents = centsOf(amount);
    if (cents === null) throw new RangeError('a deposit is whole cents');
    const order = this.#newOrder(randomUUID(), customer.accountId, amount, 'stripe');
    await this.#payments.addOrder(order);
    try {
      const { checkoutId, url } = await processor.openCheckout({
        ...customer,
        orderId: order.id,
        cents,
        doneUrl: `${pageUrl}?deposit=${order.id}`,
        cancelUrl: `${pageUrl}?cancelled=${order.id}`,
      });
      await this.#payments.setCheckout(order.id, checkoutId);
      return { kind: 'opened', order, url };
    } catch (error) {
      await this.#payments.endOrder(order.id, 'failed', this.#now());
      return { kind: 'failed', error };
    }
  }

  /** Credits an account without a payment. Idempotent by id. */
  async credit(id: string, accountId: string, amount: number, source: 'development' | 'admin'): Promise<DepositOrder> {
    await this.#payments.addOrder(this.#newOrder(id, accountId, amount, source));
    const order = await this.#payments.findOrder(id);
    if (order === null) throw new Error('the new order is missing');
    await this.#post(order, null);
    return (await this.#payments.findOrder(id)) ?? order;
  }

  /** Handles a payment event whose signature was verified. If the promise rejects, the processor should send the event again. */
  async handleEvent(event: PaymentEvent, processor: PaymentProcessor): Promise<EventOutcome> {
    if (await this.#payments.knowsEvent(event.id)) return 'replayed';
    const { outcome, orderId } = await this.#apply(event, processor);
    await this.#payments.addEvent({ id: event.id, type: event.type, orderId, outcome, at: this.#now() });
    return outcome;
  }

  async #apply(event: PaymentEventContent, processor: PaymentProcessor): Promise<{ outcome: EventOutcome; orderId: string | null }> {
    switch (event.kind) {
      case 'paid': {
        const order = await this.#payments.findOrderByCheckout(event.checkoutId);
        if (order === null) return { outcome: 'unknown_order', orderId: null };
        if (!matchesOrder(order, event)) return { outcome: 'mismatch', orderId: order.id };
        await this.#post(order, event.paymentId);
        return { outcome: 'posted', orderId: order.id };
      }
      case 'not_paid': {
        const order = await this.#payments.findOrderByCheckout(event.checkoutId);
        if (order === null) return { outcome: 'unknown_order', orderId: null };
        await this.#payments.endOrder(order.id, event.state, this.#now());
        return { outcome: 'noted', orderId: order.id };
      }
      case 'refunded':
      case 'disputed':
        return this.#suspendForReview(event, processor);
      case 'other':
        return { outcome: 'ignored', orderId: null };
      default:
        return event satisfies never;
    }
  }

  async #suspendForReview(event: PaymentEventContent & { kind: 'refunded' | 'disputed' }, processor: PaymentProcessor) {
    const known = await this.#payments.findOrderByPayment(event.paymentId);
    const named = event.kind === 'refunded' ? event.orderId : null;
    const orderId = known?.id ?? named ?? (await processor.orderOfPayment(event.paymentId));
    const order = known ?? (orderId === null ? null : await this.#payments.findOrder(orderId));
    if (order === null) return { outcome: 'unknown_order' as const, orderId: null };
    if (event.kind === 'refunded') await this.#payments.noteRefund(order.id, microUsdOfCents(event.cents));
    else await this.#payments.noteDispute(order.id, this.#now());
    await this.#accounts.setSuspended(order.accountId, true);
    return { outcome: 'flagged' as const, orderId: order.id };
  }

  /** Credits first. If a crash comes between, the repeated event marks the order as paid. */
  async #post(order: DepositOrder, paymentId: string | null): Promise<void> {
    const at = this.#now();
    await this.#ledger.deposit({ eventId: order.id, accountId: order.accountId, amount: microUsd(order.amount), source: order.source, at });
    await this.#payments.payOrder(order.id, paymentId, at);
  }

  #newOrder(id: string, accountId: string, amount: number, source: DepositOrder['source']): DepositOrder {
    return { id, accountId, amount, source, state: 'open', createdAt: this.#now(), endedAt: null, refunded: 0, disputedAt: null };
  }
}

/** Whether the payment names the order and its account, and pays its amount in US dollars. */
function matchesOrder(order: DepositOrder, event: PaymentEventContent & { kind: 'paid' }): boolean {
  return (
    event.orderId === order.id &&
    event.accountId === order.accountId &&
    event.currency === 'usd' &&
    event.cents !== null &&
    microUsdOfCents(event.cents) === order.amount
  );
}

/** 100 dollars. */
const DEVELOPMENT_DEPOSIT = microUsd(100_000_000);

/** Gives the account of development mode {@link DEVELOPMENT_DEPOSIT} to pay for requests. Idempotent by account. */
export async function ensureDevelopmentDeposit(ledger: Pick<Ledger, 'deposit'>, accountId: string, now: number): Promise<void> {
  await ledger.deposit({ eventId: `development:${accountId}`, accountId, amount: DEVELOPMENT_DEPOSIT, source: 'development', at: now });
}
