/** Fake of the Stripe endpoints that the coordinator calls, with form encoding, idempotency keys and signed webhooks. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import Stripe from 'stripe';
import { closeServer, listenLocally } from '../../../../test/support/local-server.js';

export const STRIPE_KEY = 'sk_test_local';
export const WEBHOOK_SECRET = 'whsec_local';

export interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly fields: URLSearchParams;
  readonly idempotencyKey: string | null;
}

export class FakeStripe {
  readonly requests: Recorded[] = [];
  readonly checkouts = new Map<string, Record<string, unknown>>();
  readonly transfers: Record<string, unknown>[] = [];
  /** Metadata of each payment. Key: payment id. */
  readonly payments = new Map<string, Record<string, string>>();
  /** Answers the next `times` requests with this error status. */
  failWith: { status: number; times: number } | null = null;
  payoutsEnabled = false;
  isLive = false;
  readonly webhookEndpoints: { url: string; status: string; enabled_events: readonly string[] }[] = [];
  /** Balance for transfers, in cents. */
  availableCents = Number.POSITIVE_INFINITY;
  readonly #answerByIdempotencyKey = new Map<string, { status: number; body: object }>();
  readonly #server: Server;
  readonly #signer = new Stripe(STRIPE_KEY);

  constructor() {
    this.#server = createServer((request, response) => {
      void read(request).then((text) => {
        const { status, body } = this.#answer(request, new URLSearchParams(text));
        response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_fake' }).end(JSON.stringify(body));
      });
    });
  }

  async listen(): Promise<string> {
    return await listenLocally(this.#server);
  }

  async close(): Promise<void> {
    await closeServer(this.#server);
  }

  /** Text and signature header of a webhook event about an object. */
  event(type: string, object: object, options: { id?: string; secret?: string; at?: number } = {}): { payload: string; signature: string } {
    const id = options.id ?? `evt_${randomBytes(8).toString('hex')}`;
    const payload = JSON.stringify({ id, object: 'event', type, api_version: '2026-01-01', created: 1, data: { object } }, null, 2);
    const signature = this.#signer.webhooks.generateTestHeaderString({
      payload,
      secret: options.secret ?? WEBHOOK_SECRET,
      ...(options.at === undefined ? {} : { timestamp: options.at }),
    });
    return { payload, signature };
  }

  /** Simulates the customer's payment: the checkout's later state. */
  paid(checkoutId: string, changes: object = {}): object {
    const checkout = this.checkouts.get(checkoutId);
    const paymentId = `pi_${checkoutId}`;
    this.payments.set(paymentId, (checkout?.metadata ?? {}) as Record<string, string>);
    return { ...checkout, payment_status: 'paid', status: 'complete', payment_intent: paymentId, ...changes };
  }

  #answer(request: IncomingMessage, fields: URLSearchParams): { status: number; body: object } {
    const url = new URL(request.url ?? '/', 'http://stripe');
    const key = request.headers['idempotency-key'];
    const idempotencyKey = typeof key === 'string' ? key : null;
    const path = url.pathname;
    this.requests.push({ method: request.method ?? '', path, fields, idempotencyKey });
    if (request.headers.authorization !== `Bearer ${STRIPE_KEY}`) return refusal(401, 'Invalid API Key provided');
    if (this.failWith !== null && this.failWith.times-- > 0) return refusal(this.failWith.status, 'no');
    const known = idempotencyKey === null ? undefined : this.#answerByIdempotencyKey.get(idempotencyKey);
    if (known !== undefined) return known;
    const body = this.#route(`${request.method} ${path}`, fields, url.searchParams);
    if (body === null) return refusal(404, 'Unrecognized request URL');
    const answer = body === 'insufficient' ? refusal(400, 'Insufficient available funds in your Stripe account.') : { status: 200, body };
    if (idempotencyKey !== null) this.#answerByIdempotencyKey.set(idempotencyKey, answer);
    return answer;
  }

  #route(call: string, fields: URLSearchParams, query: URLSearchParams): object | 'insufficient' | null {
    if (call === 'POST /v1/checkout/sessions') {
      const id = `cs_test_${randomBytes(8).toString('hex')}`;
      const checkout = {
        id,
        object: 'checkout.session',
        url: `https://checkout.stripe.test/${id}`,
        client_reference_id: fields.get('client_reference_id'),
        currency: fields.get('line_items[0][price_data][currency]'),
        amount_total: Number(fields.get('line_items[0][price_data][unit_amount]')),
        metadata: { order_id: fields.get('metadata[order_id]'), account_id: fields.get('metadata[account_id]') },
        payment_intent: null,
        payment_status: 'unpaid',
        status: 'open',
      };
      this.checkouts.set(id, checkout);
      return checkout;
    }
    if (call.startsWith('GET /v1/payment_intents/')) {
      const id = call.split('/').at(-1) ?? '';
      return { id, object: 'payment_intent', metadata: this.payments.get(id) ?? {} };
    }
    if (call === 'GET /v1/balance') return { object: 'balance', livemode: this.isLive };
    if (call === 'GET /v1/webhook_endpoints')
      return { object: 'list', data: this.webhookEndpoints, has_more: false, url: '/v1/webhook_endpoints' };
    if (call === 'POST /v1/accounts') return { id: `acct_${randomBytes(6).toString('hex')}`, object: 'account' };
    if (call.startsWith('GET /v1/accounts/'))
      return { id: call.split('/').at(-1), object: 'account', payouts_enabled: this.payoutsEnabled };
    if (call === 'POST /v1/account_links') return { object: 'account_link', url: 'https://connect.stripe.test/onboard' };
    if (call === 'GET /v1/transfers') {
      const data = this.transfers.filter((transfer) => transfer.transfer_group === query.get('transfer_group'));
      return { object: 'list', data, has_more: false, url: '/v1/transfers' };
    }
    if (call === 'POST /v1/transfers') {
      if (Number(fields.get('amount')) > this.availableCents) return 'insufficient';
      const transfer = {
        id: `tr_${randomBytes(6).toString('hex')}`,
        object: 'transfer',
        amount: Number(fields.get('amount')),
        currency: fields.get('currency'),
        destination: fields.get('destination'),
        transfer_group: fields.get('transfer_group'),
      };
      this.transfers.push(transfer);
      return transfer;
    }
    return null;
  }
}

function refusal(status: number, message: string): { status: number; body: object } {
  const type = status < 500 ? 'invalid_request_error' : 'api_error';
  return { status, body: { error: { type, message } } };
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
