/**
 * What the coordinator asks of a payment processor: a page on which a customer pays, events about it that can be trusted,
 * and transfers to those whose machines earned. Amounts are whole cents here, as processors count them.
 */

export interface PaymentProcessor {
  /** Makes the page for one deposit. Repeating it with the same order makes no second one. */
  openCheckout(checkout: CheckoutRequest): Promise<{ readonly checkoutId: string; readonly url: string }>;
  /** Reads an event as it was posted. Throws {@link ForgedEvent} unless the processor signed these very bytes lately. */
  readEvent(body: Uint8Array, signature: string): PaymentEvent;
  /** The order that a payment was made for, by what the processor keeps with the payment. Null when it is none of ours. */
  orderOfPayment(paymentId: string): Promise<string | null>;
  /** Makes the place an account's withdrawals are paid to. Repeating it makes no second one. */
  openPayoutAccount(owner: { readonly accountId: string; readonly email: string }): Promise<string>;
  /** Where its owner tells the processor what it must know, and whether it can be paid to by now. */
  payoutAccount(payoutId: string, returnUrl: string): Promise<{ readonly ready: boolean; readonly onboardingUrl: string | null }>;
  /** Pays a withdrawal, once, however often it is asked for. Throws {@link TransferRefused} when the processor will not. */
  transfer(transfer: { readonly withdrawalId: string; readonly payoutId: string; readonly cents: number }): Promise<string>;
}

export interface CheckoutRequest {
  readonly orderId: string;
  readonly accountId: string;
  readonly email: string;
  readonly cents: number;
  readonly doneUrl: string;
  readonly cancelUrl: string;
}

export type PaymentEvent = { readonly id: string; readonly type: string } & PaymentNews;

export type PaymentNews =
  | {
      readonly kind: 'paid';
      readonly checkoutId: string;
      readonly paymentId: string | null;
      readonly orderId: string | null;
      readonly accountId: string | null;
      /** Lowercase ISO 4217 code. */
      readonly currency: string | null;
      readonly cents: number | null;
    }
  | { readonly kind: 'not_paid'; readonly checkoutId: string; readonly state: 'expired' | 'failed' }
  /** `cents`: given back of this payment so far, altogether. */
  | { readonly kind: 'refunded'; readonly paymentId: string; readonly orderId: string | null; readonly cents: number }
  | { readonly kind: 'disputed'; readonly paymentId: string }
  | { readonly kind: 'other' };

/** An event that the processor did not sign, or signed too long ago. */
export class ForgedEvent extends Error {
  constructor() {
    super('the event is not signed by the payment processor');
    this.name = 'ForgedEvent';
  }
}

/** The processor said no to a transfer, for good: nothing was paid. */
export class TransferRefused extends Error {
  constructor(options?: ErrorOptions) {
    super('the payment processor refused the transfer', options);
    this.name = 'TransferRefused';
  }
}

const MICRO_USD_PER_CENT = 10_000;

/** Whole cents of an amount in micro-USD, or null when it is none. */
export function centsOf(microUsd: number): number | null {
  return microUsd % MICRO_USD_PER_CENT === 0 ? microUsd / MICRO_USD_PER_CENT : null;
}

export function microUsdOfCents(cents: number): number {
  return cents * MICRO_USD_PER_CENT;
}
