/** `PaymentHealth` recognises outages of the payment processor (Stripe) by failed calls, for the status page and metrics. */
import type { PaymentProcessor } from './payment-processor.js';

/** Error types of the Stripe client that mean an outage of Stripe or the network. Other types do not. */
const OUTAGE_TYPES: ReadonlySet<unknown> = new Set(['StripeConnectionError', 'StripeAPIError']);

export class PaymentHealth {
  readonly #onOutage: () => void;
  #hasFailed = false;

  /** `onOutage` is called for each call that failed because of an outage. */
  constructor(onOutage: () => void = () => {}) {
    this.#onOutage = onOutage;
  }

  /** Passes to `report` whether an outage occurred since the last report. If `report` rejects, the outage is reported again next time. */
  async reportFailure(report: (hasFailed: boolean) => Promise<void>): Promise<void> {
    const hasFailed = this.#hasFailed;
    this.#hasFailed = false;
    try {
      await report(hasFailed);
    } catch (error) {
      this.#hasFailed ||= hasFailed;
      throw error;
    }
  }

  observe(processor: PaymentProcessor): PaymentProcessor {
    const observed =
      <Args extends readonly unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
      async (...args: Args): Promise<Result> => {
        try {
          return await call(...args);
        } catch (error) {
          if (isOutage(error)) {
            this.#hasFailed = true;
            this.#onOutage();
          }
          throw error;
        }
      };
    return {
      openCheckout: observed((checkout) => processor.openCheckout(checkout)),
      // Parses bytes without a call to the processor.
      readEvent: (body, signature) => processor.readEvent(body, signature),
      orderOfPayment: observed((paymentId) => processor.orderOfPayment(paymentId)),
      openPayoutAccount: observed((owner) => processor.openPayoutAccount(owner)),
      payoutAccount: observed((payoutId, returnUrl) => processor.payoutAccount(payoutId, returnUrl)),
      transfer: observed((transfer) => processor.transfer(transfer)),
    };
  }
}

function isOutage(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'type' in error && OUTAGE_TYPES.has(error.type);
}
