/** `POST /webhooks/stripe`: events of the payment processor, as the bytes that it signed. */
import { apiError } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import type { Log } from '../log.js';
import type { Deposits } from '../payments/deposits.js';
import { ForgedEvent, type PaymentEvent, type PaymentProcessor } from '../payments/payment-processor.js';
import { bytesOf } from './body-bytes.js';
import type { RateLimits } from './rate-limits.js';
import { sendError } from './send-error.js';

export const WEBHOOK_PATH = '/webhooks/stripe';
const MAX_EVENT_BYTES = 256 * 1024;

export function addPaymentWebhook(
  server: FastifyInstance,
  { processor, deposits, limits, log }: { processor: PaymentProcessor; deposits: Deposits; limits: RateLimits; log: Log },
): void {
  server.post(WEBHOOK_PATH, { bodyLimit: MAX_EVENT_BYTES, onRequest: limits.publicRoutes }, async (request, reply) => {
    const signature = request.headers['stripe-signature'];
    const body = bytesOf(request);
    let event: PaymentEvent;
    try {
      event = processor.readEvent(body, typeof signature === 'string' ? signature : '');
    } catch (error) {
      if (!(error instanceof ForgedEvent)) throw error;
      sendError(reply, apiError('invalid_request', { message: 'The event is not signed by the payment processor.' }));
      return reply;
    }
    const outcome = await deposits.take(event, processor);
    const line = { event: event.id, type: event.type, outcome };
    if (outcome === 'mismatch' || outcome === 'flagged') log.error(line, 'payment event');
    else log.info(line, 'payment event');
    return { received: true };
  });
}
