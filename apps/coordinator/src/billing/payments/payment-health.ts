/** `PaymentHealth`: whether calls to the payment processor failed because of the processor or the network. */
import type { PaymentProcessor } from './payment-processor.js';

/** Errors of the Stripe client that blame the processor or the network. Other errors blame the call. */
const OUTAGES: ReadonlySet<unknown> = new Set(['StripeConnectionError', 'StripeAPIError']);

export class PaymentHealth {
  readonly #onOutage: () => void;
  #hasFailed = false;

  /** `onOutage`: called for each failed call. */
  constructor(onOutage: () => void = () => {}) {
    this.#onOutage = onOutage;
  }

  /** Calls `report` with whether a call has failed since the previous report. A failed report is repeated. */
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

  /** The same processor, observed. */
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
      readEvent: (body, signature) => processor.readEvent(body, signature),
      orderOfPayment: observed((paymentId) => processor.orderOfPayment(paymentId)),
      openPayoutAccount: observed((owner) => processor.openPayoutAccount(owner)),
      payoutAccount: observed((payoutId, returnUrl) => processor.payoutAccount(payoutId, returnUrl)),
      transfer: observed((transfer) => processor.transfer(transfer)),
    };
  }
}

function isOutage(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'type' in error && OUTAGES.has(error.type);
}
