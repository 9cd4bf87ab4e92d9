/** `POST /webhooks/stripe`: receives events that the payment processor signed. The signature covers the exact bytes of the body. */
import { apiError } from '@inference/formats';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import Type from 'typebox';
import type { Deposits } from '../../billing/payments/deposits.js';
import { ForgedEvent, type PaymentEvent, type PaymentProcessor } from '../../billing/payments/payment-processor.js';
import type { Log } from '../../log.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { sendError } from '../plugins/send-error.js';

export const WEBHOOK_PATH = '/webhooks/stripe';
const MAX_EVENT_BYTES = 256 * 1024;
const schema = {
  headers: Type.Object({ 'stripe-signature': Type.String() }),
  body: Type.Object({}, { description: 'An event, as the payment processor signed it.' }),
  response: { 200: Type.Object({ received: Type.Literal(true) }) },
};

interface PaymentWebhookDeps {
  readonly processor: PaymentProcessor;
  readonly deposits: Deposits;
  readonly log: Log;
  /** Called with the outcome of each event: an outcome of `Deposits.handleEvent`, or `forged` or `failed`. */
  readonly onOutcome: (outcome: string) => void;
}

export function addPaymentWebhook(server: FastifyInstance, { processor, deposits, log, onOutcome }: PaymentWebhookDeps): void {
  const refuse = (reply: FastifyReply): FastifyReply => {
    sendError(reply, apiError('invalid_request', { message: 'The event is not signed by the payment processor.' }));
    return reply;
  };
  // Refuses requests without a signature before the body is read.
  const requireSignature: onRequestHookHandler = (request, reply, done) => {
    if (signatureOf(request) === '') refuse(reply);
    else done();
  };
  server.post(
    WEBHOOK_PATH,
    { schema, bodyLimit: MAX_EVENT_BYTES, onRequest: [server.rateLimits.publicRoutes, requireSignature] },
    async (request, reply) => {
      const body = bytesOf(request);
      let event: PaymentEvent;
      try {
        event = processor.readEvent(body, signatureOf(request));
      } catch (error) {
        if (!(error instanceof ForgedEvent)) throw error;
        onOutcome('forged');
        return refuse(reply);
      }
      const outcome = await deposits.handleEvent(event, processor).catch((error: unknown) => {
        onOutcome('failed');
        throw error;
      });
      onOutcome(outcome);
      const line = { event: event.id, type: event.type, outcome };
      if (outcome === 'mismatch' || outcome === 'flagged') log.error(line, 'payment event');
      else log.info(line, 'payment event');
      return { received: true };
    },
  );
}

function signatureOf(request: FastifyRequest): string {
  const signature = request.headers['stripe-signature'];
  return typeof signature === 'string' ? signature : '';
}
