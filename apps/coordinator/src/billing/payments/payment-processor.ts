/** `PaymentProcessor` is the interface of a payment service such as Stripe: checkouts, webhook events, payout accounts, transfers. */

export interface PaymentProcessor {
  /** Opens a checkout page for one deposit. Idempotent by order. */
  openCheckout(checkout: CheckoutRequest): Promise<{ readonly checkoutId: string; readonly url: string }>;
  /** Parses a webhook event. Throws {@link ForgedEvent} unless the processor signed it recently. */
  readEvent(body: Uint8Array, signature: string): PaymentEvent;
  /** Order id in the metadata of a payment; null: none. */
  orderOfPayment(paymentId: string): Promise<string | null>;
  /** Creates the payout account of an owner and resolves to its id. Idempotent by `accountId`. */
  openPayoutAccount(owner: { readonly accountId: string; readonly email: string }): Promise<string>;
  /** Whether payouts are possible. If not, `onboardingUrl` is the processor's page where the owner enters what is missing. */
  payoutAccount(payoutId: string, returnUrl: string): Promise<{ readonly ready: boolean; readonly onboardingUrl: string | null }>;
  /**
   * Pays a withdrawal, at most once per id. Resolves to the processor's id of the transfer.
   *
   * @throws {TransferRefused} A repetition with the same `claimedAt` may get the same refusal without a new attempt.
   */
  transfer(transfer: Transfer): Promise<string>;
}

export interface Transfer {
  readonly withdrawalId: string;
  /** When the operator began the transfer, in milliseconds since 1970. After a refusal, a new time means a new attempt. */
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

/** Cents of an amount; null: not whole cents. */
export function centsOf(microUsd: number): number | null {
  return microUsd % MICRO_USD_PER_CENT === 0 ? microUsd / MICRO_USD_PER_CENT : null;
}

export function microUsdOfCents(cents: number): number {
  return cents * MICRO_USD_PER_CENT;
}
