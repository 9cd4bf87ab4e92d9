/** Request options are applied, refused by name, or reported as ignored in a header. Also the forms of stream signatures. */
import { verifyStream } from '@inference/verifier';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { microUsd } from '../../../src/billing/micro-usd.js';
import { Browser } from '../../support/console-client.js';
import { errorOf, type Harness, startHarness } from '../../support/harness.js';
import { BODIES, expectSignedStream, STREAMING } from '../../support/inference-calls.js';

const CHAT = '/v1/chat/completions';

describe('a request', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarness();
    await harness.provider();
  });
  afterAll(() => harness.close());

  const chat = (members: object, headers: Record<string, string> = {}) => harness.post(CHAT, { ...BODIES[CHAT], ...members }, headers);

  it('with a misspelt or unknown member is refused, in the shape of its format', async () => {
    const misspelt = await chat({ temprature: 0 });
    expect(misspelt.status).toBe(400);
    expect(await errorOf(misspelt)).toMatchObject({
      code: 'unknown_parameter',
      param: 'temprature',
      message: 'Unrecognized request argument supplied: temprature (did you mean `temperature`?)',
    });
    const unknown = await harness.post('/v1/messages', { ...BODIES['/v1/messages'], flux: 1 });
    expect(unknown.status).toBe(400);
    expect(await unknown.json()).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'flux: Extra inputs are not permitted.' },
    });
  });

  it('of a client that names betas may have the members of the betas, but no misspelt members', async () => {
    const beta = { 'anthropic-beta': 'flux-2099-01-01' };
    const taken = await harness.post('/v1/messages', { ...BODIES['/v1/messages'], flux: 1 }, beta);
    expect([taken.status, taken.headers.get('x-inference-ignored')]).toEqual([200, 'flux']);
    expect((await harness.post('/v1/messages', { ...BODIES['/v1/messages'], temprature: 1 }, beta)).status).toBe(400);
  });

  it.each([false, true])('is answered with the members that have no effect (stream: %s)', async (stream) => {
    const answered = await chat({ stream, user: 'u', store: true, reasoning_effort: 'low' });
    expect(answered.status).toBe(200);
    expect(answered.headers.get('x-inference-ignored')).toBe('user, store, reasoning_effort');
    await answered.arrayBuffer();
    const nothing = await chat({ stream, store: false });
    expect(nothing.headers.get('x-inference-ignored')).toBeNull();
    await nothing.arrayBuffer();
  });

  it("of Codex is served and reports the ignored tools; other clients get the tool's name", async () => {
    const tools = [
      { type: 'function', name: 'shell', parameters: { type: 'object' } },
      { type: 'namespace', name: 'n', tools: [] },
      { type: 'web_search', external_web_access: false },
    ];
    const codex = await harness.post('/v1/responses', { ...BODIES['/v1/responses'], tools, store: false, client_metadata: { a: 'b' } });
    expect(codex.status).toBe(200);
    expect(codex.headers.get('x-inference-ignored')).toBe('client_metadata, tools[1] (namespace), tools[2] (web_search)');
    const other = await harness.post('/v1/responses', { ...BODIES['/v1/responses'], tools: [{ type: 'web_search' }] });
    expect(other.status).toBe(400);
    expect(await errorOf(other)).toMatchObject({ param: 'tools[0]', message: expect.stringContaining('"web_search"') });
  });

  it('for stored objects is refused with an alternative', async () => {
    for (const members of [{ previous_response_id: 'resp_1' }, { conversation: 'conv_1' }]) {
      const refused = await harness.post('/v1/responses', { ...BODIES['/v1/responses'], ...members });
      expect(refused.status).toBe(400);
      expect((await errorOf(refused)).message).toMatch(/[Ss]end the (whole conversation|earlier messages)/);
    }
    const stored = await harness.post('/v1/responses', { ...BODIES['/v1/responses'], store: true });
    expect(stored.headers.get('x-inference-ignored')).toBe('store');
    expect(await stored.json()).toMatchObject({ store: false });
  });

  it('for an unknown model is answered with its name and similar listed models', async () => {
    await harness.provider({ models: ['qwen/qwen2.5-7b-instruct:8bit'] });
    const message = async (model: string) => (await errorOf(await chat({ model }))).message;
    expect(await message('qwen/qwen2.5-7b-instrukt:8bit')).toBe(
      'The model "qwen/qwen2.5-7b-instrukt:8bit" is not served here. Did you mean "qwen/qwen2.5-7b-instruct:8bit"? GET /v1/models lists the models that are.',
    );
    expect(await message('qwen2.5-7b-instruct')).toContain('Did you mean "qwen/qwen2.5-7b-instruct:8bit"?');
    expect(await message('gpt-4o')).toBe('The model "gpt-4o" is not served here. GET /v1/models lists the models that are.');
    expect(await message('<script>alert(1)</script>')).not.toMatch(/[<>]/);
    expect((await message('x'.repeat(256))).length).toBeLessThan(300);
    const one = await harness.get('/v1/models/qwen2.5-7b-instruct');
    expect(one.status).toBe(404);
    expect((await errorOf(one)).message).toContain('"qwen/qwen2.5-7b-instruct:8bit"');
    const messagesAnswer = await harness.post('/v1/messages', { ...BODIES['/v1/messages'], model: 'qwen2.5-7b-instruct' });
    expect(JSON.stringify(await messagesAnswer.json())).toContain('qwen/qwen2.5-7b-instruct:8bit');
  });

  it.each<[object, RegExp]>([
    [{ param: 'response_format.json_schema.schema.minItems', limit: 1000 }, /schema\.minItems is limited to 1000 here, because .*Lower it/],
    [{ param: 'response_format.json_schema.schema.uniqueItems' }, /uniqueItems cannot be enforced .*set strict to false/],
    [{ param: 'logprobs' }, /^logprobs is not offered for this model\.$/],
  ])('that a machine cannot serve is refused with a sentence that says why (%o)', async (failure, expected) => {
    const own = await startHarness();
    try {
      await own.provider({ onJob: (job) => job.fail({ code: 'unsupported', ...failure }) });
      const refused = await own.chat();
      expect(refused.status).toBe(400);
      expect((await errorOf(refused)).message).toMatch(expected);
    } finally {
      await own.close();
    }
  });
});

describe('the signature of a stream', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarness();
    await harness.provider();
  });
  afterAll(() => harness.close());

  async function streamed(endpoint: (typeof STREAMING)[number], headers: Record<string, string>) {
    const response = await harness.post(endpoint, { ...BODIES[endpoint], stream: true }, headers);
    const { end } = await expectSignedStream(response.clone());
    const bytes = new Uint8Array(await response.arrayBuffer());
    const trusted = { publicKey: response.headers.get('x-attestation-se-public-key') ?? '' };
    expect(verifyStream(bytes, trusted)).toMatchObject({ verified: true });
    return { end, text: new TextDecoder().decode(bytes) };
  }

  it.each(STREAMING)('of %s is a comment when requested', async (endpoint) => {
    const { end, text } = await streamed(endpoint, { 'x-inference-signature': 'comment' });
    expect(text).toMatch(/\n\n: inference-signature \{"se_signature":/);
    expect(text).not.toMatch(/data: .*"se_signature"/);
    expect(end).toBe(endpoint === '/v1/messages' ? '' : 'data: [DONE]\n\n');
    // Clients that expect `choices` in every event find it.
    for (const [, data] of text.matchAll(/^data: (\{.*"choices".*)$/gm)) expect(JSON.parse(data ?? '').choices).toHaveLength(1);
  });

  it('is refused in any other form, also for plain answers', async () => {
    for (const stream of [true, false]) {
      const refused = await harness.post(CHAT, { ...BODIES[CHAT], stream }, { 'x-inference-signature': 'trailer' });
      expect(refused.status).toBe(400);
      expect(await errorOf(refused)).toMatchObject({
        param: 'X-Inference-Signature',
        message: 'X-Inference-Signature must be event or comment.',
      });
    }
  });

  it('has the form of the key, unless the request says otherwise', async () => {
    const browser = new Browser(harness.url);
    await browser.signUp('signature@example.com');
    const { secret, id } = await browser.newKey({ signature_form: 'comment' });
    const { data } = (await (await browser.get('/console/v1/keys')).json()) as { data: { id: string; signature_form: string | null }[] };
    expect(data.find((key) => key.id === id)?.signature_form).toBe('comment');
    const { id: accountId } = (await (await browser.get('/console/v1/me')).json()) as { id: string };
    const deposit = { eventId: 'test:signature', accountId, amount: microUsd(1_000_000), source: 'admin', at: Date.now() } as const;
    await harness.app.ledger.deposit(deposit);
    const own = { authorization: `Bearer ${secret}` };
    expect((await streamed(CHAT, own)).text).toContain('\n\n: inference-signature ');
    expect((await streamed(CHAT, { ...own, 'x-inference-signature': 'event' })).text).toMatch(/data: .*"se_signature"/);
    expect((await browser.send('PATCH', `/console/v1/keys/${id}`, { signature_form: 'event' })).status).toBe(200);
    expect((await streamed(CHAT, own)).text).toMatch(/data: .*"se_signature"/);
    expect((await browser.post('/console/v1/keys', { name: 'x', signature_form: 'trailer' })).status).toBe(400);
    const plain = (await (await browser.post('/console/v1/keys', { name: 'y' })).json()) as { key: { signature_form: string | null } };
    expect(plain.key.signature_form).toBeNull();
  });
});
