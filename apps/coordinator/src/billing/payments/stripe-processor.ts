/** `StripeProcessor` implements `PaymentProcessor` with Stripe: Checkout for deposits, signed webhooks, and Connect for withdrawals. */
import Stripe from 'stripe';
import {
  type CheckoutRequest,
  ForgedEvent,
  type PaymentEvent,
  type PaymentEventContent,
  type PaymentProcessor,
  type Transfer,
  TransferRefused,
} from './payment-processor.js';

export interface StripeSettings {
  readonly secretKey: string;
  readonly webhookSecret: string;
  /** Base URL of a test server in place of Stripe's API; null: Stripe. */
  readonly apiUrl: string | null;
}

const TIMEOUT_MS = 20_000;
/** Time in which a customer can pay, in seconds. */
const CHECKOUT_LIFETIME_S = 3600;
const PRODUCT = 'Prepaid balance';

export class StripeProcessor implements PaymentProcessor {
  readonly #stripe: Stripe;
  readonly #webhookSecret: string;
  readonly #now: () => number;

  constructor(settings: StripeSettings, now: () => number) {
    this.#webhookSecret = settings.webhookSecret;
    this.#now = now;
    this.#stripe = stripeClient(settings, { timeout: TIMEOUT_MS, maxNetworkRetries: 2 });
  }

  async openCheckout(checkout: CheckoutRequest): Promise<{ checkoutId: string; url: string }> {
    const metadata = { order_id: checkout.orderId, account_id: checkout.accountId };
    const session = await this.#stripe.checkout.sessions.create(
      {
        mode: 'payment',
        client_reference_id: checkout.orderId,
        customer_email: checkout.email,
        line_items: [{ quantity: 1, price_data: { currency: 'usd', unit_amount: checkout.cents, product_data: { name: PRODUCT } } }],
        metadata,
        // Copied to the payment, so that a refund can be traced to its order.
        payment_intent_data: { metadata },
        success_url: checkout.doneUrl,
        cancel_url: checkout.cancelUrl,
        expires_at: Math.floor(this.#now() / 1000) + CHECKOUT_LIFETIME_S,
      },
      { idempotencyKey: `checkout-${checkout.orderId}` },
    );
    if (session.url === null) throw new Error('the checkout has no address');
    return { checkoutId: session.id, url: session.url };
  }

  readEvent(body: Uint8Array, signature: string): PaymentEvent {
    let event: Stripe.Event;
    try {
      event = this.#stripe.webhooks.constructEvent(Buffer.from(body), signature, this.#webhookSecret);
    } catch {
      throw new ForgedEvent();
    }
    return { id: event.id, type: event.type, ...contentOf(event) };
  }

  async orderOfPayment(paymentId: string): Promise<string | null> {
    const payment = await this.#stripe.paymentIntents.retrieve(paymentId);
    return payment.metadata.order_id ?? null;
  }

  async openPayoutAccount(owner: { accountId: string; email: string }): Promise<string> {
    const account = await this.#stripe.accounts.create(
      { type: 'express', email: owner.email, capabilities: { transfers: { requested: true } }, metadata: { account_id: owner.accountId } },
      { idempotencyKey: `payout-account-${owner.accountId}` },
    );
    return account.id;
  }

  async payoutAccount(payoutId: string, returnUrl: string): Promise<{ ready: boolean; onboardingUrl: string | null }> {
    const account = await this.#stripe.accounts.retrieve(payoutId);
    if (account.payouts_enabled) return { ready: true, onboardingUrl: null };
    const link = await this.#stripe.accountLinks.create({
      account: payoutId,
      type: 'account_onboarding',
      refresh_url: returnUrl,
      return_url: returnUrl,
    });
    return { ready: false, onboardingUrl: link.url };
  }

  async transfer(transfer: Transfer): Promise<string> {
    // Finds an earlier transfer of this withdrawal, because Stripe forgets idempotency keys after a day, but no transfer groups.
    const transfers = await this.#stripe.transfers.list({ transfer_group: transfer.withdrawalId, limit: 1 });
    const [first] = transfers.data;
    if (first !== undefined) return first.id;
    try {
      const created = await this.#stripe.transfers.create(
        {
          amount: transfer.cents,
          currency: 'usd',
          destination: transfer.payoutId,
          transfer_group: transfer.withdrawalId,
          metadata: { withdrawal_id: transfer.withdrawalId },
        },
        // `claimedAt` makes a new key, because Stripe repeats a refusal for the same key even when the transfer has become possible.
        { idempotencyKey: `transfer-${transfer.withdrawalId}-${transfer.claimedAt}` },
      );
      return created.id;
    } catch (error) {
      if (error instanceof Stripe.errors.StripeInvalidRequestError) throw new TransferRefused({ cause: error });
      throw error;
    }
  }
}

/** Client of the Stripe API, or of a server at `apiUrl`. */
export function stripeClient(
  { secretKey, apiUrl }: Pick<StripeSettings, 'secretKey' | 'apiUrl'>,
  limits: { readonly timeout: number; readonly maxNetworkRetries: number },
): Stripe {
  const api = apiUrl === null ? null : new URL(apiUrl);
  return new Stripe(secretKey, {
    ...limits,
    telemetry: false,
    ...(api === null
      ? {}
      : {
          protocol: api.protocol === 'http:' ? ('http' as const) : ('https' as const),
          host: api.hostname,
          port: api.port || (api.protocol === 'http:' ? 80 : 443),
        }),
  });
}

function contentOf(event: Stripe.Event): PaymentEventContent {
  switch (event.type) {
    // With a delayed payment method, `completed` reports an unpaid session, and `async_payment_succeeded` the payment.
    case 'checkout.session.completed':
    case 'checkout.session.async_payment_succeeded':
      return event.data.object.payment_status === 'paid' ? paidContent(event.data.object) : { kind: 'other' };
    case 'checkout.session.expired':
      return { kind: 'not_paid', checkoutId: event.data.object.id, state: 'expired' };
    case 'checkout.session.async_payment_failed':
      return { kind: 'not_paid', checkoutId: event.data.object.id, state: 'failed' };
    case 'charge.refunded': {
      const charge = event.data.object;
      const paymentId = idOf(charge.payment_intent);
      if (paymentId === null) return { kind: 'other' };
      return { kind: 'refunded', paymentId, orderId: charge.metadata.order_id ?? null, cents: charge.amount_refunded };
    }
    case 'charge.dispute.created': {
      const paymentId = idOf(event.data.object.payment_intent);
      return paymentId === null ? { kind: 'other' } : { kind: 'disputed', paymentId };
    }
    default:
      return { kind: 'other' };
  }
}

function paidContent(session: Stripe.Checkout.Session): PaymentEventContent {
  return {
    kind: 'paid',
    checkoutId: session.id,
    paymentId: idOf(session.payment_intent),
    orderId: session.client_reference_id,
    accountId: session.metadata?.account_id ?? null,
    currency: session.currency,
    cents: session.amount_total,
  };
}

function idOf(value: string | { readonly id: string } | null): string | null {
  return typeof value === 'object' && value !== null ? value.id : value;
}
