/**
 * Deposits: ordered by the customer, paid at the processor, posted to the ledger once.
 *
 * Events may be repeated, late or out of order. The ledger posts each order once, and only if the payment matches the stored order.
 * Refunds and disputes never reduce a balance: the order is flagged and the account suspended for the operator to review.
 */
import { randomUUID } from 'node:crypto';
import type { AccountRepository } from '../../database/accounts/account-repository.js';
import type { DepositOrder, PaymentRepository } from '../../database/payment-repository.js';
import type { Ledger } from '../ledger/ledger.js';
import { microUsd } from '../micro-usd.js';
import { centsOf, microUsdOfCents, type PaymentEvent, type PaymentNews, type PaymentProcessor } from './payment-processor.js';

export interface DepositsOptions {
  readonly book: PaymentRepository;
  readonly ledger: Pick<Ledger, 'deposit'>;
  readonly accounts: AccountRepository;
  readonly now: () => number;
}

/** Outcome of a processor event: only `posted` moved money. */
export type EventOutcome = 'posted' | 'noted' | 'flagged' | 'replayed' | 'mismatch' | 'unknown_order' | 'ignored';

export type OpenOutcome =
  | { readonly kind: 'opened'; readonly order: DepositOrder; readonly url: string }
  | { readonly kind: 'failed'; readonly error: unknown };

export class Deposits {
  readonly #book: PaymentRepository;
  readonly #ledger: Pick<Ledger, 'deposit'>;
  readonly #accounts: AccountRepository;
  readonly #now: () => number;

  constructor(options: DepositsOptions) {
    this.#book = options.book;
    this.#ledger = options.ledger;
    this.#accounts = options.accounts;
    this.#now = options.now;
  }

  /** Opens a checkout. `amount` is micro-USD in whole cents; `pageUrl` is where the customer comes back to. */
  async open(
    processor: PaymentProcessor,
    customer: { readonly accountId: string; readonly email: string },
    amount: number,
    pageUrl: string,
  ): Promise<OpenOutcome> {
    const cents = centsOf(amount);
    if (cents === null) throw new RangeError('a deposit is whole cents');
    const order = this.#newOrder(randomUUID(), customer.accountId, amount, 'stripe');
    await this.#book.addOrder(order);
    try {
      const { checkoutId, url } = await processor.openCheckout({
        ...customer,
        orderId: order.id,
        cents,
        doneUrl: `${pageUrl}?deposit=${order.id}`,
        cancelUrl: `${pageUrl}?cancelled=${order.id}`,
      });
      await this.#book.setCheckout(order.id, checkoutId);
      return { kind: 'opened', order, url };
    } catch (error) {
      await this.#book.endOrder(order.id, 'failed', this.#now());
      return { kind: 'failed', error };
    }
  }

  /** Credits at once: by hand, or in development. The same id credits once. */
  async credit(id: string, accountId: string, amount: number, source: 'development' | 'admin'): Promise<DepositOrder> {
    await this.#book.addOrder(this.#newOrder(id, accountId, amount, source));
    const order = await this.#book.findOrder(id);
    if (order === null) throw new Error('the order that was just made is gone');
    await this.#post(order, null);
    return (await this.#book.findOrder(id)) ?? order;
  }

  /** Handles a verified event. A rejection asks the processor to send the event again. */
  async take(event: PaymentEvent, processor: PaymentProcessor): Promise<EventOutcome> {
    if (await this.#book.knowsEvent(event.id)) return 'replayed';
    const { outcome, orderId } = await this.#apply(event, processor);
    await this.#book.addEvent({ id: event.id, type: event.type, orderId, outcome, at: this.#now() });
    return outcome;
  }

  async #apply(news: PaymentNews, processor: PaymentProcessor): Promise<{ outcome: EventOutcome; orderId: string | null }> {
    switch (news.kind) {
      case 'paid': {
        const order = await this.#book.findOrderByCheckout(news.checkoutId);
        if (order === null) return { outcome: 'unknown_order', orderId: null };
        if (!agrees(order, news)) return { outcome: 'mismatch', orderId: order.id };
        await this.#post(order, news.paymentId);
        return { outcome: 'posted', orderId: order.id };
      }
      case 'not_paid': {
        const order = await this.#book.findOrderByCheckout(news.checkoutId);
        if (order === null) return { outcome: 'unknown_order', orderId: null };
        await this.#book.endOrder(order.id, news.state, this.#now());
        return { outcome: 'noted', orderId: order.id };
      }
      case 'refunded':
      case 'disputed':
        return this.#flag(news, processor);
      case 'other':
        return { outcome: 'ignored', orderId: null };
      default:
        return news satisfies never;
    }
  }

  async #flag(news: PaymentNews & { kind: 'refunded' | 'disputed' }, processor: PaymentProcessor) {
    const known = await this.#book.findOrderByPayment(news.paymentId);
    const named = news.kind === 'refunded' ? news.orderId : null;
    const orderId = known?.id ?? named ?? (await processor.orderOfPayment(news.paymentId));
    const order = known ?? (orderId === null ? null : await this.#book.findOrder(orderId));
    if (order === null) return { outcome: 'unknown_order' as const, orderId: null };
    if (news.kind === 'refunded') await this.#book.noteRefund(order.id, microUsdOfCents(news.cents));
    else await this.#book.noteDispute(order.id, this.#now());
    await this.#accounts.setSuspended(order.accountId, true);
    return { outcome: 'flagged' as const, orderId: order.id };
  }

  /** Ledger first, then the order: after a crash between them the repeated event completes the order. */
  async #post(order: DepositOrder, paymentId: string | null): Promise<void> {
    const at = this.#now();
    await this.#ledger.deposit({ eventId: order.id, accountId: order.accountId, amount: microUsd(order.amount), source: order.source, at });
    await this.#book.payOrder(order.id, paymentId, at);
  }

  #newOrder(id: string, accountId: string, amount: number, source: DepositOrder['source']): DepositOrder {
    return { id, accountId, amount, source, state: 'open', createdAt: this.#now(), endedAt: null, refunded: 0, disputedAt: null };
  }
}

/** Whether the payment matches the order in amount, currency and session. */
function agrees(order: DepositOrder, news: PaymentNews & { kind: 'paid' }): boolean {
  return (
    news.orderId === order.id &&
    news.accountId === order.accountId &&
    news.currency === 'usd' &&
    news.cents !== null &&
    microUsdOfCents(news.cents) === order.amount
  );
}

/** 100 dollars. */
export const DEVELOPMENT_DEPOSIT = microUsd(100_000_000);

/**
 * Deposits {@link DEVELOPMENT_DEPOSIT} into the account of development mode, so that a first request is paid for. Idempotent by
 * account.
 */
export async function ensureDevelopmentDeposit(ledger: Pick<Ledger, 'deposit'>, accountId: string, now: number): Promise<void> {
  await ledger.deposit({ eventId: `development:${accountId}`, accountId, amount: DEVELOPMENT_DEPOSIT, source: 'development', at: now });
}
