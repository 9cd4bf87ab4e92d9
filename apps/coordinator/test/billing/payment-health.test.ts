/** Which failed calls to the payment processor are treated as an outage. */
import { expect, it } from 'vitest';
import { PaymentHealth } from '../../src/billing/payments/payment-health.js';
import { ForgedEvent, type PaymentProcessor, TransferRefused } from '../../src/billing/payments/payment-processor.js';

it('counts failures of the processor and of the way to it, once', async () => {
  let outages = 0;
  const health = new PaymentHealth(() => outages++);
  const failing = (error: Error): PaymentProcessor => {
    const call = () => Promise.reject(error);
    const readEvent = (): never => {
      throw error;
    };
    return health.observe({
      openCheckout: call,
      readEvent,
      orderOfPayment: call,
      openPayoutAccount: call,
      payoutAccount: call,
      transfer: call,
    });
  };
  const stripeError = (type: string) => Object.assign(new Error(type), { type });
  const reported = async (): Promise<boolean> => {
    let hasFailed = false;
    await health.reportFailure(async (failed) => {
      hasFailed = failed;
    });
    return hasFailed;
  };
  const fails = async (error: Error): Promise<boolean> => {
    await expect(failing(error).orderOfPayment('p')).rejects.toBe(error);
    return reported();
  };
  expect(await fails(stripeError('StripeConnectionError'))).toBe(true);
  expect(await reported()).toBe(false);
  await expect(failing(stripeError('StripeAPIError')).orderOfPayment('p')).rejects.toThrow('StripeAPIError');
  await expect(health.reportFailure(() => Promise.reject(new Error('no database')))).rejects.toThrow('no database');
  expect(await reported()).toBe(true);
  expect(await fails(stripeError('StripeInvalidRequestError'))).toBe(false);
  expect(await fails(new TransferRefused())).toBe(false);
  expect(() => failing(new ForgedEvent()).readEvent(new Uint8Array(), '')).toThrow(ForgedEvent);
  expect(await reported()).toBe(false);
  expect(outages).toBe(2);
});
