import { randomUUID } from 'node:crypto';
import {
  ConsoleBalanceSchema,
  ConsoleBillingDetailsSchema,
  ConsoleDepositPageSchema,
  ConsoleDepositReceiptSchema,
  ConsoleEarningDaysSchema,
  ConsoleNewDepositSchema,
  ConsolePayoutAccountSchema,
  ConsoleUsageDaysSchema,
  ConsoleWithdrawalPageSchema,
  ConsoleWithdrawalSchema,
} from '@inference/formats';
import type { JobId, ProviderId } from '@inference/protocol';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { createAccount } from '../../../src/database/accounts/api-key-repository.js';
import { Browser, PASSWORD } from '../../support/console-client.js';
import { describeDatabases, startHarnessOn } from '../../support/databases.js';
import { FakeStripe, STRIPE_KEY, WEBHOOK_SECRET } from '../../support/fake-stripe.js';
import { errorOf, type Harness, NO_RATE_LIMITS, startHarness } from '../../support/harness.js';
import { settledJob } from '../../support/settled-job.js';

const DOLLAR = 1_000_000;
const OPERATOR = { name: 'Example Networks GmbH', address: 'Hauptstraße 1\n10115 Berlin', taxId: 'DE123456789' };

describeDatabases('payments', (fresh) => {
  let stripe: FakeStripe;
  let harness: Harness;
  let person: Browser;
  let accountId: string;
  let people = 0;

  beforeAll(async () => {
    stripe = new FakeStripe();
    const apiUrl = await stripe.listen();
    harness = await startHarnessOn(fresh, {
      config: {
        rateLimits: NO_RATE_LIMITS,
        stripe: { secretKey: STRIPE_KEY, webhookSecret: WEBHOOK_SECRET, apiUrl },
        operator: OPERATOR,
      },
    });
  });
  afterAll(async () => {
    await harness.close();
    await stripe.close();
  });
  beforeEach(async () => {
    stripe.failWith = null;
    person = new Browser(harness.url);
    await person.signUp(`payer-${++people}@example.com`);
    accountId = ((await (await person.get('/console/v1/me')).json()) as { id: string }).id;
  });

  const admin = (method: string, path: string, body?: unknown): Promise<Response> =>
    new Browser(harness.url).send(method, `/admin/v1${path}`, body, { authorization: `Bearer ${harness.adminKey}` });

  const balance = async (): Promise<number> =>
    (await bodyAs(ConsoleBalanceSchema, await person.get('/console/v1/balance'))).balance_micro_usd as number;

  async function order(amount = 10 * DOLLAR): Promise<{ id: string; checkoutId: string }> {
    const answer = await person.post('/console/v1/deposits', { amount_micro_usd: amount });
    expect(answer.status).toBe(201);
    const { deposit, checkout_url } = await bodyAs(ConsoleNewDepositSchema, answer);
    return { id: (deposit as { id: string }).id, checkoutId: String(checkout_url).split('/').at(-1) ?? '' };
  }

  const stateOf = async (id: string): Promise<Record<string, unknown> | undefined> => {
    const { data } = await bodyAs(ConsoleDepositPageSchema, await person.get('/console/v1/deposits'));
    return (data as Record<string, unknown>[]).find((deposit) => deposit.id === id);
  };

  const hook = (event: { payload: string; signature: string }): Promise<Response> =>
    fetch(`${harness.url}/webhooks/stripe`, { method: 'POST', headers: { 'stripe-signature': event.signature }, body: event.payload });

  it('credits a paid checkout once', async () => {
    const { id, checkoutId } = await order();
    const request = stripe.requests.findLast(({ path }) => path === '/v1/checkout/sessions');
    expect(request?.fields.get('line_items[0][price_data][unit_amount]')).toBe('1000');
    expect(request?.fields.get('success_url')).toBe(`${harness.url}/balance?deposit=${id}`);
    expect(await stateOf(id)).toMatchObject({ state: 'open', amount_micro_usd: 10 * DOLLAR, source: 'stripe' });
    expect(await balance()).toBe(0);
    const event = stripe.event('checkout.session.completed', stripe.paid(checkoutId));
    const answers = await Promise.all([hook(event), hook(event), hook(event)]);
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200]);
    expect(await balance()).toBe(10 * DOLLAR);
    expect((await hook(event)).status).toBe(200);
    // Another event type about the same payment credits nothing.
    expect((await hook(stripe.event('checkout.session.async_payment_succeeded', stripe.paid(checkoutId)))).status).toBe(200);
    expect(await balance()).toBe(10 * DOLLAR);
    expect(await stateOf(id)).toMatchObject({ state: 'paid' });
  });

  it("refuses events without Stripe's signature, or with an old one", async () => {
    const { checkoutId } = await order();
    const paid = stripe.paid(checkoutId);
    const good = stripe.event('checkout.session.completed', paid);
    const forged = [
      stripe.event('checkout.session.completed', paid, { secret: 'whsec_other' }),
      { ...good, signature: '' },
      { ...good, signature: good.signature.replace(/v1=./, 'v1=x') },
      { ...good, payload: good.payload.replace('"amount_total": 1000', '"amount_total": 9000') },
      { ...good, payload: `${good.payload} ` },
      stripe.event('checkout.session.completed', paid, { at: Math.floor(Date.now() / 1000) - 3600 }),
    ];
    for (const event of forged) expect((await hook(event)).status).toBe(400);
    expect((await fetch(`${harness.url}/webhooks/stripe`, { method: 'POST', body: good.payload })).status).toBe(400);
    expect((await hook({ ...good, payload: 'x'.repeat(300_000) })).status).toBe(413);
    expect(await balance()).toBe(0);
    expect((await hook(good)).status).toBe(200);
    expect(await balance()).toBe(10 * DOLLAR);
    // Five, not six: the event with an empty signature is refused before its body is read, and is not counted.
    const metrics = await (await harness.get('/metrics', harness.adminKey)).text();
    expect(metrics).toContain('inference_payment_events_total{outcome="forged"} 5\n');
    expect(metrics).toMatch(/inference_payment_events_total\{outcome="posted"\} [1-9]/);
  });

  it('posts only amounts that match the order', async () => {
    for (const changes of [
      { amount_total: 100_000 },
      { currency: 'eur' },
      { client_reference_id: 'other' },
      { metadata: { account_id: 'other' } },
      { payment_status: 'unpaid' },
      { id: 'cs_unknown' },
    ]) {
      const { id, checkoutId } = await order();
      expect((await hook(stripe.event('checkout.session.completed', stripe.paid(checkoutId, changes)))).status).toBe(200);
      expect(await stateOf(id)).toMatchObject({ state: 'open' });
    }
    expect((await hook(stripe.event('invoice.created', { id: 'in_1' }))).status).toBe(200);
    expect(await balance()).toBe(0);
  });

  it('accepts events in any order', async () => {
    const { id, checkoutId } = await order();
    const paid = stripe.paid(checkoutId);
    expect((await hook(stripe.event('checkout.session.expired', { ...paid, status: 'expired' }))).status).toBe(200);
    expect(await stateOf(id)).toMatchObject({ state: 'expired' });
    expect((await hook(stripe.event('checkout.session.completed', paid))).status).toBe(200);
    expect((await hook(stripe.event('checkout.session.expired', paid))).status).toBe(200);
    expect(await stateOf(id)).toMatchObject({ state: 'paid' });
    expect(await balance()).toBe(10 * DOLLAR);
  });

  it('marks refunds and disputes in any order, and suspends the account until an operator has looked', async () => {
    const { secret } = await person.newKey();
    const { id, checkoutId } = await order();
    const paid = stripe.paid(checkoutId) as { payment_intent: string; metadata: object };
    const charge = (cents: number): object => ({ payment_intent: paid.payment_intent, metadata: paid.metadata, amount_refunded: cents });
    expect((await hook(stripe.event('charge.refunded', charge(700)))).status).toBe(200);
    expect((await hook(stripe.event('checkout.session.completed', paid))).status).toBe(200);
    expect((await hook(stripe.event('charge.refunded', charge(300)))).status).toBe(200);
    expect((await harness.get('/v1/models', secret)).status).toBe(403);
    expect((await person.post('/console/v1/withdrawals', { amount_micro_usd: DOLLAR })).status).toBe(403);
    const { data } = (await (await admin('GET', `/deposits?account_id=${accountId}`)).json()) as { data: object[] };
    expect(data).toMatchObject([{ id, state: 'paid', refunded_micro_usd: 7 * DOLLAR, disputed_at: null }]);
    await admin('PATCH', `/accounts/${accountId}`, { suspended: false });
    expect((await hook(stripe.event('charge.dispute.created', { payment_intent: paid.payment_intent }))).status).toBe(200);
    expect(await (await admin('GET', `/accounts/${accountId}`)).json()).toMatchObject({ suspended_at: expect.any(String) });
    // A dispute of a payment that is unknown here is accepted and ignored.
    expect((await hook(stripe.event('charge.dispute.created', { payment_intent: 'pi_foreign' }))).status).toBe(200);
  });

  it('has a receipt of each deposit, for its own account only', async () => {
    const { id, checkoutId } = await order();
    const paid = stripe.paid(checkoutId) as { payment_intent: string; metadata: object };
    expect((await hook(stripe.event('checkout.session.completed', paid))).status).toBe(200);
    const details = { name: 'Lovelace Ltd', address: '12 St James’s Square\nLondon', tax_id: null };
    const saved = await person.send('PUT', '/console/v1/billing-details', details);
    expect(await bodyAs(ConsoleBillingDetailsSchema, saved)).toEqual(details);
    const receipt = await bodyAs(ConsoleDepositReceiptSchema, await person.get(`/console/v1/deposits/${id}`));
    expect(receipt).toMatchObject({
      deposit: { id, amount_micro_usd: 10 * DOLLAR, source: 'stripe', state: 'paid', refunded_micro_usd: 0 },
      currency: 'usd',
      operator: { name: OPERATOR.name, address: OPERATOR.address, tax_id: OPERATOR.taxId },
      account: { email: `payer-${people}@example.com` },
      billing_details: details,
    });
    const refund = { payment_intent: paid.payment_intent, metadata: paid.metadata, amount_refunded: 300 };
    expect((await hook(stripe.event('charge.refunded', refund))).status).toBe(200);
    await admin('PATCH', `/accounts/${accountId}`, { suspended: false });
    const refunded = await person.get(`/console/v1/deposits/${id}`);
    expect(await refunded.json()).toMatchObject({ deposit: { refunded_micro_usd: 3 * DOLLAR } });

    const stranger = new Browser(harness.url);
    await stranger.signUp(`stranger-${accountId}@example.com`);
    const none = { name: null, address: null, tax_id: null };
    expect(await (await stranger.get('/console/v1/billing-details')).json()).toEqual(none);
    for (const path of [id, 'unknown', 'admin-', 'x'.repeat(300)]) {
      const answer = await stranger.get(`/console/v1/deposits/${path}`);
      expect([path, answer.status, await errorOf(answer)]).toMatchObject([path, 404, { param: 'deposit_id' }]);
    }
    expect((await new Browser(harness.url).get(`/console/v1/deposits/${id}`)).status).toBe(401);
    const credit = await admin('POST', `/accounts/${accountId}/deposits`, { amount_micro_usd: DOLLAR, reference: `gift-${accountId}` });
    const { id: creditId } = (await credit.json()) as { id: string };
    expect(await (await person.get(`/console/v1/deposits/${creditId}`)).json()).toMatchObject({ deposit: { source: 'admin' } });
  });

  it('bounds billing details, and removes them with the account', async () => {
    const details = { name: 'n'.repeat(200), address: Array(8).fill('a'.repeat(61)).join('\n'), tax_id: 't'.repeat(50) };
    const put = (body: object): Promise<Response> => person.send('PUT', '/console/v1/billing-details', body);
    expect((await put(details)).status).toBe(200);
    for (const [param, value] of [
      ['name', 'n'.repeat(201)],
      ['name', ''],
      ['name', 'two\nlines'],
      ['name', undefined],
      ['address', 'a'.repeat(501)],
      ['address', Array(9).fill('a').join('\n')],
      ['address', 'a\u0000b'],
      ['tax_id', 't'.repeat(51)],
      ['tax_id', 7],
    ] as const) {
      const answer = await put({ ...details, [param]: value });
      expect([value, answer.status, await errorOf(answer)]).toMatchObject([value, 400, { param }]);
    }
    expect((await put({ ...details, account_id: 'other' })).status).toBe(400);
    expect(await (await person.get('/console/v1/billing-details')).json()).toEqual(details);
    const stored = () => harness.app.database.selectFrom('billing_details').selectAll().where('account_id', '=', accountId).execute();
    expect(await stored()).toHaveLength(1);
    expect((await person.post('/console/auth/delete-user', { password: PASSWORD })).status).toBe(200);
    expect(await stored()).toEqual([]);
  });

  it('reports that Stripe does not respond, and charges nothing', async () => {
    stripe.failWith = { status: 500, times: 10 };
    const answer = await person.post('/console/v1/deposits', { amount_micro_usd: DOLLAR });
    expect([answer.status, await errorOf(answer)]).toMatchObject([502, { code: 'payment_service_failed' }]);
    const { data } = (await (await person.get('/console/v1/deposits')).json()) as { data: object[] };
    expect(data).toMatchObject([{ state: 'failed' }]);
    expect(harness.log.join('')).not.toContain(STRIPE_KEY);
  });

  it('refuses invalid amounts', async () => {
    for (const amount of [0, -DOLLAR, 0.5, DOLLAR + 1, DOLLAR / 2, 1e15, Number.MAX_SAFE_INTEGER + 1, '1000000', null]) {
      for (const path of ['/deposits', '/withdrawals']) {
        expect([amount, (await person.post(`/console/v1${path}`, { amount_micro_usd: amount })).status]).toEqual([amount, 400]);
      }
    }
    expect((await person.post('/console/v1/deposits/development', { amount_micro_usd: -1 })).status).toBe(400);
    expect((await person.post('/console/v1/deposits', { amount_micro_usd: DOLLAR, account_id: 'other' })).status).toBe(400);
  });

  it('credits manual deposits once per reference', async () => {
    const give = (body: object): Promise<Response> => admin('POST', `/accounts/${accountId}/deposits`, body);
    const reference = `invoice-${accountId}`;
    const first = await Promise.all([1, 2].map(() => give({ amount_micro_usd: 3 * DOLLAR, reference })));
    expect(first.map((answer) => answer.status)).toEqual([201, 201]);
    expect(await balance()).toBe(3 * DOLLAR);
    expect((await give({ amount_micro_usd: 4 * DOLLAR, reference })).status).toBe(409);
    expect((await admin('POST', '/accounts/nobody/deposits', { amount_micro_usd: 1, reference: 'x' })).status).toBe(404);
    expect((await give({ amount_micro_usd: 1.5, reference: 'y' })).status).toBe(400);
    expect(await balance()).toBe(3 * DOLLAR);
    const body = JSON.stringify({ amount_micro_usd: 1, reference: 'z' });
    expect((await person.post(`/admin/v1/accounts/${accountId}/deposits`, body)).status).toBe(403);
  });

  it('pays out earnings only, manually or by transfer, each once', async () => {
    await person.post('/console/v1/deposits/development', { amount_micro_usd: 5 * DOLLAR });
    const refused = await person.post('/console/v1/withdrawals', { amount_micro_usd: DOLLAR });
    expect([refused.status, (await errorOf(refused)).message]).toEqual([409, 'At most 0.000000 USD can be withdrawn.']);
    await earn(harness, accountId, 6 * DOLLAR);
    const ask = async (): Promise<string> => {
      const answer = await person.post('/console/v1/withdrawals', { amount_micro_usd: 2 * DOLLAR });
      expect(answer.status).toBe(201);
      return String((await bodyAs(ConsoleWithdrawalSchema, answer)).id);
    };
    const end = (id: string, how: string): Promise<Response> => admin('POST', `/withdrawals/${id}/end`, { end: how });
    const [byHand, rejected, transferred] = [await ask(), await ask(), await ask()];
    expect(await balance()).toBe(5 * DOLLAR);
    expect((await person.post('/console/v1/withdrawals', { amount_micro_usd: DOLLAR })).status).toBe(409);

    expect(await (await end(byHand, 'paid')).json()).toMatchObject({ state: 'paid' });
    expect((await end(byHand, 'paid')).status).toBe(200);
    expect((await end(byHand, 'rejected')).status).toBe(409);
    expect(await (await end(rejected, 'rejected')).json()).toMatchObject({ state: 'rejected' });
    expect(await balance()).toBe(7 * DOLLAR);

    expect((await errorOf(await end(transferred, 'transfer'))).message).toMatch(/no payout account/);
    const opened = await person.post('/console/v1/payout-account');
    expect(await bodyAs(ConsolePayoutAccountSchema, opened)).toEqual({
      ready: false,
      onboarding_url: 'https://connect.stripe.test/onboard',
    });
    stripe.payoutsEnabled = true;
    expect(await (await person.post('/console/v1/payout-account')).json()).toEqual({ ready: true, onboarding_url: null });
    const before = stripe.transfers.length;
    stripe.failWith = { status: 400, times: 2 };
    expect((await end(transferred, 'transfer')).status).not.toBe(200);
    stripe.failWith = null;
    // Stripe repeats a refusal for its idempotency key, so a later attempt needs another key.
    stripe.availableCents = 0;
    const unpaid = await Promise.all([end(transferred, 'transfer'), end(transferred, 'transfer')]);
    expect(unpaid.map((answer) => answer.status)).toEqual([409, 409]);
    stripe.availableCents = Number.POSITIVE_INFINITY;
    const transfers = [end(transferred, 'transfer'), end(transferred, 'transfer')];
    const claims = harness.app.database.selectFrom('withdrawal_ends').select('end').where('withdrawal_id', '=', transferred);
    await harness.until(async () => (await claims.execute()).length === 1);
    expect((await end(transferred, 'rejected')).status).toBe(409);
    expect((await Promise.all(transfers)).map((answer) => answer.status)).toEqual([200, 200]);
    expect((await end(transferred, 'transfer')).status).toBe(200);
    expect(stripe.transfers.slice(before)).toMatchObject([{ amount: 200, currency: 'usd', transfer_group: transferred }]);
    expect(await balance()).toBe(7 * DOLLAR);

    const list = await bodyAs(ConsoleWithdrawalPageSchema, await person.get('/console/v1/withdrawals'));
    expect((list.data as { state: string }[]).map((row) => row.state).sort()).toEqual(['paid', 'paid', 'rejected']);
    expect((await (await admin('GET', '/withdrawals?state=requested')).json()) as object).toMatchObject({ data: [] });
    expect((await admin('GET', '/withdrawals?state=x')).status).toBe(400);
    expect((await end('unknown', 'paid')).status).toBe(404);
    const stranger = new Browser(harness.url);
    await stranger.signUp(`stranger-${accountId}@example.com`);
    expect(await (await stranger.get('/console/v1/withdrawals')).json()).toMatchObject({ data: [] });
  });

  it('reports usage and earnings by day', async () => {
    const at = Date.UTC(2026, 0, 31, 23, 59);
    const job = (id: string, changes: object) =>
      settledJob({ job_id: `${accountId}-${id}`, account_id: 'someone', reserved_at: at, ...changes });
    const rows = [
      job('1', { account_id: accountId }),
      job('2', { account_id: accountId }),
      job('3', { account_id: accountId, ended_at: at + 60_000 }),
      job('4', { account_id: accountId, model: 'b/model' }),
      job('5', { account_id: accountId, state: 'released', cost: 0, earned: 0, fee: 0 }),
      job('6', { earner: accountId }),
      job('8', { earner: `provider:early-${accountId}`, provider_id: `early-${accountId}` }),
      job('7', {}),
    ];
    await harness.app.database
      .insertInto('jobs')
      .values(rows as never)
      .execute();
    await harness.app.ledger.linkProvider(`early-${accountId}` as ProviderId, accountId, at);
    const usage = await bodyAs(ConsoleUsageDaysSchema, await person.get('/console/v1/usage/days?from=2026-01-31&to=2026-02-01'));
    const row = (day: string, model: string, requests: number) => ({
      day,
      model,
      requests,
      prompt_tokens: 10 * requests,
      completion_tokens: 20 * requests,
      images: 0,
      cost_micro_usd: 50 * requests,
    });
    expect(usage).toEqual({
      from: '2026-01-31',
      to: '2026-02-01',
      data: [row('2026-01-31', 'a/model', 2), row('2026-01-31', 'b/model', 1), row('2026-02-01', 'a/model', 1)],
    });
    expect(
      await bodyAs(ConsoleEarningDaysSchema, await person.get('/console/v1/earnings/days?from=2026-01-31&to=2026-01-31')),
    ).toMatchObject({
      data: [
        { day: '2026-01-31', provider_id: `early-${accountId}`, jobs: 1, tokens: 30, earned_micro_usd: 45 },
        { day: '2026-01-31', provider_id: 'machine-1', jobs: 1, tokens: 30, earned_micro_usd: 45 },
      ],
    });
    for (const query of ['from=2026-02-30', 'from=2026-02-01&to=2026-01-01', 'from=2020-01-01&to=2026-01-01', 'to=today']) {
      expect((await person.get(`/console/v1/usage/days?${query}`)).status).toBe(400);
    }
  });
});

describe('without a payment service', () => {
  it('takes no payment, and credits free deposits in development only', async () => {
    const harness = await startHarness({ config: { development: false } });
    const person = new Browser(harness.url);
    await person.signUp('ada@example.com');
    const amount = { amount_micro_usd: DOLLAR };
    expect((await person.post('/console/v1/deposits', amount)).status).toBe(501);
    expect((await person.post('/console/v1/deposits/development', amount)).status).toBe(403);
    expect((await person.post('/console/v1/payout-account')).status).toBe(501);
    expect((await harness.post('/webhooks/stripe', {})).status).toBe(404);
    expect((await person.post('/console/auth/request-password-reset', { email: 'ada@example.com' })).status).toBe(501);
    expect(await (await person.get('/console/v1/settings')).json()).toMatchObject({ development: false, deposits: [], mail: false });
    await harness.close();
  });
});

async function bodyAs(schema: TSchema, answer: Response): Promise<Record<string, unknown>> {
  const body: unknown = await answer.json();
  expect([...Compile(schema).Errors(body)]).toEqual([]);
  return body as Record<string, unknown>;
}

/** Settles a job of another customer on a provider of this account, which earns `amount`. */
async function earn(harness: Harness, accountId: string, amount: number): Promise<void> {
  const { ledger } = harness.app;
  const jobId = randomUUID() as JobId;
  const providerId = `machine-${accountId}` as ProviderId;
  const at = Date.now();
  const perImage = microUsd(Math.ceil((amount * 100) / PROVIDER_SHARE_PERCENT));
  const price = { id: 'test', model: 'm', promptPerMillion: microUsd(0), completionPerMillion: microUsd(0), perImage, validFrom: 0 };
  const payer = await createAccount(harness.app.database, 'payer', at);
  await ledger.deposit({ eventId: jobId, accountId: payer, amount: perImage, source: 'admin', at });
  await ledger.linkProvider(providerId, accountId, at);
  const job = {
    jobId,
    accountId: payer,
    apiKeyId: 'none',
    keySpendLimit: null,
    model: 'm',
    endpoint: '/v1/chat/completions' as const,
    price,
    at,
  };
  expect(await ledger.reserve({ ...job, maxPromptTokens: 1, maxCompletionTokens: 1, images: 1 })).toMatchObject({ kind: 'reserved' });
  const usage = { promptTokens: 0, completionTokens: 0, hiddenTokens: 0, cachedTokens: 0, images: 1 };
  expect(await ledger.settle({ jobId, providerId, ...usage, at })).toMatchObject({ kind: 'settled', earned: amount });
}

const PROVIDER_SHARE_PERCENT = 90;
