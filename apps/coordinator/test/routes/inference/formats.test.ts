import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Harness, MODEL, startHarness } from '../../support/harness.js';
import { BODIES, expectSignedPlain, expectSignedStream, messages, STREAMING, type Streaming } from '../../support/inference-calls.js';

const ID_PREFIXES: Record<Streaming, string> = {
  '/v1/chat/completions': 'chatcmpl-',
  '/v1/completions': 'cmpl-',
  '/v1/responses': 'resp_',
  '/v1/messages': 'msg_',
};

describe('every endpoint', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarness();
    await harness.provider();
  });
  afterAll(() => harness.close());

  it.each(STREAMING)('%s responds whole and signed', async (endpoint) => {
    const { answer } = await expectSignedPlain(await harness.post(endpoint, BODIES[endpoint]), endpoint);
    expect(answer.id).toMatch(new RegExp(`^${ID_PREFIXES[endpoint]}[0-9a-f]{32}$`));
    expect(JSON.stringify(answer)).toContain('Hello from here.');
  });

  it.each(STREAMING)('%s streams, and ends with its signature', async (endpoint) => {
    const { signed, end } = await expectSignedStream(await harness.post(endpoint, { ...BODIES[endpoint], stream: true }));
    expect(signed).toContain(' from');
    expect(signed).toContain(`"${ID_PREFIXES[endpoint]}`);
    expect(end).toBe(endpoint === '/v1/messages' ? '' : 'data: [DONE]\n\n');
  });

  it('/v1/messages/count_tokens counts and generates nothing', async () => {
    const endpoint = '/v1/messages/count_tokens';
    const response = await harness.post(endpoint, { model: MODEL, messages });
    const { answer, receipt } = await expectSignedPlain(response, endpoint);
    expect(answer).toEqual({ input_tokens: 7 });
    expect(receipt).toMatchObject({ overrides: {}, usage: { completion_tokens: 0 } });
  });

  it('/v1/responses treats a body with messages as a chat completion', async () => {
    const { answer } = await expectSignedPlain(await harness.post('/v1/responses', BODIES['/v1/chat/completions']), '/v1/responses');
    expect(answer).toMatchObject({ object: 'chat.completion', choices: [{ message: { content: 'Hello from here.' } }] });
    expect(answer.id).toMatch(/^chatcmpl-/);
    const { end } = await expectSignedStream(await harness.post('/v1/responses', { ...BODIES['/v1/chat/completions'], stream: true }));
    expect(end).toBe('data: [DONE]\n\n');
  });

  it('tolerates versions, betas and a query, and accepts either key header', async () => {
    const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'a-2025-01-01,b-2099-01-01' };
    expect((await harness.post('/v1/messages?beta=true', BODIES['/v1/messages'], headers)).status).toBe(200);
    for (const key of [{ 'x-api-key': harness.apiKey }, { authorization: `Bearer ${harness.apiKey}` }]) {
      const response = await fetch(`${harness.url}/v1/messages`, {
        method: 'POST',
        headers: { ...key },
        body: JSON.stringify(BODIES['/v1/messages']),
      });
      expect(response.status).toBe(200);
      const id = response.headers.get('request-id');
      expect(id).toMatch(/^req_[0-9a-f]{32}$/);
      expect(response.headers.get('x-request-id')).toBe(id);
    }
  });
});

describe('a stream that is silent for long', () => {
  let harness: Harness;
  afterEach(() => harness.close());

  it.each(STREAMING)('of %s is committed and kept alive, and its signature still verifies', async (endpoint) => {
    harness = await startHarness({ jobTimings: { commitMs: 20, keepAliveMs: 20 } });
    let go: () => void = () => {};
    await harness.provider({
      onJob: (job) => {
        job.accept();
        go = () => {
          for (const part of job.render(['late'])) if (part.length > 0) job.push(part);
          job.push(new Uint8Array(), true);
          job.complete();
        };
      },
    });
    const response = await harness.post(endpoint, { ...BODIES[endpoint], stream: true });
    const [copy, whole] = (response.body as ReadableStream<Uint8Array>).tee();
    const silence = copy.pipeThrough(new TextDecoderStream()).getReader();
    for (let seen = ''; (seen.match(/^: keep-alive\n\n/gm)?.length ?? 0) < 2; ) {
      const { value, done } = await silence.read();
      expect(done, seen).toBe(false);
      seen += value;
    }
    go();
    await silence.cancel();
    expect((await expectSignedStream(new Response(whole, response))).signed).toContain('late');
  });

  it.each(STREAMING)("of %s tells of a failure in the format's own event", async (endpoint) => {
    harness = await startHarness({ jobTimings: { commitMs: 20 } });
    let fail: () => void = () => {};
    await harness.provider({
      onJob: (job) => {
        job.accept();
        fail = () => job.fail({ code: 'engine_failed' });
      },
    });
    const response = await harness.post(endpoint, { ...BODIES[endpoint], stream: true });
    fail();
    expect(response.status).toBe(200);
    const text = await response.text();
    const event = /^(?:event: (\w+)\n)?data: (.*)\n\n$/.exec(text);
    const data = JSON.parse(event?.[2] ?? 'null');
    expect(event?.[1]).toBe(endpoint === '/v1/messages' || endpoint === '/v1/responses' ? 'error' : undefined);
    if (endpoint === '/v1/messages') {
      expect(data).toMatchObject({ error: { type: 'api_error' }, request_id: response.headers.get('request-id') });
    } else expect(data.error).toMatchObject({ code: 'provider_failed' });
  });
});
