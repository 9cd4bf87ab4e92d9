/**
 * `PaymentProcessor` is the interface of a payment service such as Stripe: checkout, signed events and transfers. Amounts are whole cents.
 */

export interface PaymentProcessor {
  /** Opens a checkout page for one deposit. Idempotent by order. */
  openCheckout(checkout: CheckoutRequest): Promise<{ readonly checkoutId: string; readonly url: string }>;
  /** Parses a webhook event. Throws {@link ForgedEvent} unless the processor signed it recently. */
  readEvent(body: Uint8Array, signature: string): PaymentEvent;
  /** Order id in the metadata of a payment, if any. */
  orderOfPayment(paymentId: string): Promise<string | null>;
  /** Creates an owner's payout account. Idempotent by account. */
  openPayoutAccount(owner: { readonly accountId: string; readonly email: string }): Promise<string>;
  /** Whether payouts are possible, and the page where the owner completes the processor's onboarding. */
  payoutAccount(payoutId: string, returnUrl: string): Promise<{ readonly ready: boolean; readonly onboardingUrl: string | null }>;
  /**
   * Pays a withdrawal, at most once per id. Resolves to the processor's id of the transfer.
   *
   * @throws {TransferRefused} With the same `claimedAt`, the processor may repeat its refusal without a new attempt.
   */
  transfer(transfer: Transfer): Promise<string>;
}

export interface Transfer {
  readonly withdrawalId: string;
  /** When the operator claimed the transfer, in milliseconds. A claim after a refusal is a new attempt. */
  readonly claimedAt: number;
  readonly payoutId: string;
  readonly cents: number;
}

export interface CheckoutRequest {
  readonly orderId: string;
  readonly accountId: string;
  readonly email: string;
  readonly cents: number;
  readonly doneUrl: string;
  readonly cancelUrl: string;
}

export type PaymentEvent = { readonly id: string; readonly type: string } & PaymentEventContent;

export type PaymentEventContent =
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
  /** `cents` is the total refunded for this payment so far. */
  | { readonly kind: 'refunded'; readonly paymentId: string; readonly orderId: string | null; readonly cents: number }
  | { readonly kind: 'disputed'; readonly paymentId: string }
  | { readonly kind: 'other' };

/** The event has no valid, recent signature of the processor. */
export class ForgedEvent extends Error {
  constructor() {
    super('the event is not signed by the payment processor');
    this.name = 'ForgedEvent';
  }
}

/** The processor refused a transfer and paid nothing. */
export class TransferRefused extends Error {
  constructor(options?: ErrorOptions) {
    super('the payment processor refused the transfer', options);
    this.name = 'TransferRefused';
  }
}

const MICRO_USD_PER_CENT = 10_000;

/** An amount in cents, or null if that is not a whole number. */
export function centsOf(microUsd: number): number | null {
  return microUsd % MICRO_USD_PER_CENT === 0 ? microUsd / MICRO_USD_PER_CENT : null;
}

export function microUsdOfCents(cents: number): number {
  return cents * MICRO_USD_PER_CENT;
}
