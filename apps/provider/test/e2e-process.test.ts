/** The whole program and a light agent before a coordinator that relays sealed requests: real model, helper process, real socket. */
import { type E2eRequestTerms, fromBase64, MAX_E2E_BODY_BYTES, type SealedE2eRequest, sealE2eRequest } from '@inference/protocol';
import { nodeE2eCrypto, providerIdOf } from '@inference/protocol/crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LightAgent } from '../../../test/support/light/agent.js';
import { promptOf, textOf } from '../../../test/support/light/script.js';
import { type OpenedE2eAnswer, openE2eAnswer } from './support/e2e-answer.js';
import { FakeCoordinator, type FakeProviderSession, type RelayedAnswer, type RelayOptions } from './support/fake-coordinator.js';
import { ProviderProcess } from './support/provider-process.js';

const CANARY = 'canary-90b2';

interface SealedBody {
  readonly sealed: SealedE2eRequest;
  readonly body: Uint8Array;
}

function seal(session: FakeProviderSession, model: string, request: object, terms: Partial<E2eRequestTerms> = {}): SealedBody {
  const { key, publicKey } = session;
  if (key === null) throw new Error('not registered');
  const { stream = false } = request as { stream?: boolean };
  const body = Buffer.from(JSON.stringify({ model, ...request }));
  const sealed = sealE2eRequest(nodeE2eCrypto, {
    context: {
      ...{ endpoint: '/v1/chat/completions', model, stream, max_tokens: 64 },
      ...{ issued_at: Date.now(), expires_at: Date.now() + 60_000 },
      ...terms,
    },
    recipients: [{ provider_id: providerIdOf(publicKey), key_id: key.key_id, x25519: fromBase64(key.x25519_public_key) }],
    body,
  });
  return { sealed, body };
}

function open(session: FakeProviderSession, { sealed, body }: SealedBody, { bytes, completed, failure }: RelayedAnswer): OpenedE2eAnswer {
  if (completed === null) throw new Error(`the job failed: ${failure?.code}`);
  return openE2eAnswer({ sealed, recipient: 0, body, bytes, completed, publicKey: session.publicKey });
}

describe('the provider program', () => {
  let coordinator: FakeCoordinator;
  let provider: ProviderProcess;
  let session: FakeProviderSession;

  beforeAll(async () => {
    coordinator = await FakeCoordinator.listen();
    provider = ProviderProcess.start(coordinator.url, ['--simulated-enclave', '--context', '1024']);
    session = await coordinator.session();
    await session.admit();
  });
  afterAll(async () => {
    await provider.dispose();
    await coordinator.close();
  });

  const ask = async (request: object, terms: Partial<E2eRequestTerms> = {}, options: RelayOptions = {}) => {
    const sealed = seal(session, 'pico-demo', request, terms);
    const answer = await session.relay(sealed.sealed, options);
    return { sealed, answer };
  };
  const messages = [{ role: 'user', content: 'What is the capital of France?' }];

  test('registers the profile', () => {
    expect(session.register?.e2e_versions).toEqual([1]);
  });

  test.each<[string, object, Partial<E2eRequestTerms>]>([
    ['chat completions', { messages, temperature: 0 }, {}],
    ['completions', { prompt: 'The capital of France', temperature: 0, max_tokens: 64 }, { endpoint: '/v1/completions' }],
    ['responses', { input: 'What is the capital of France?', temperature: 0 }, { endpoint: '/v1/responses' }],
    ['messages', { messages, temperature: 0, max_tokens: 64 }, { endpoint: '/v1/messages' }],
  ])('answers %s, streamed and plain', async (_name, request, terms) => {
    const plain = await ask(request, terms);
    const whole = open(session, plain.sealed, plain.answer);
    expect(whole.status).toBe(200);
    expect(whole.receipt.usage?.completion_tokens).toBeGreaterThan(0);
    expect(whole.receipt.engine).toMatch(/^llama\.cpp /);
    const stream = await ask({ ...request, stream: true }, terms);
    const streamed = open(session, stream.sealed, stream.answer);
    expect(streamed.contentType).toMatch(/event-stream/);
    expect(streamed.receipt.usage?.completion_tokens).toBe(whole.receipt.usage?.completion_tokens);
  });

  test('counts tokens', async () => {
    const { sealed, answer } = await ask({ messages }, { endpoint: '/v1/messages/count_tokens', max_tokens: 1 });
    expect(JSON.parse(open(session, sealed, answer).body)).toEqual({ input_tokens: expect.any(Number) });
  });

  test('refuses requests beyond its model within the seal', async () => {
    const embed = await ask({ input: 'text' }, { endpoint: '/v1/embeddings', max_tokens: 1 });
    expect(open(session, embed.sealed, embed.answer)).toMatchObject({ status: 400, receipt: { finish_reason: 'refused' } });
    const long = await ask({ messages: [{ role: 'user', content: 'word '.repeat(4000) }] });
    const { status, body } = open(session, long.sealed, long.answer);
    expect(status).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ error: { code: 'context_length_exceeded' } });
  });

  test('takes a body of the largest size, in many frames', async () => {
    const rest = JSON.stringify({ model: 'pico-demo', messages: [{ role: 'user', content: '' }] }).length;
    const { sealed, answer } = await ask({ messages: [{ role: 'user', content: 'x'.repeat(MAX_E2E_BODY_BYTES - rest) }] });
    expect(open(session, sealed, answer).status).toBe(400);
  });

  test('ends and signs a stream that is cancelled', async () => {
    const long = { messages: [{ role: 'user', content: 'Tell me a long story.' }], stream: true, max_tokens: 900 };
    const { sealed, answer } = await ask(long, { max_tokens: 900 }, { cancelAfterBytes: 1 });
    if (answer.failure !== null) throw new Error(`the job failed: ${answer.failure.code}`);
    const { receipt } = open(session, sealed, answer);
    expect(['cancelled', 'stop', 'length']).toContain(receipt.finish_reason);
  });

  test('takes a request once', async () => {
    const { sealed, answer } = await ask({ messages, max_tokens: 4 }, { max_tokens: 4 });
    expect(answer.failure).toBeNull();
    expect((await session.relay(sealed.sealed)).failure).toEqual({ code: 'replayed' });
  });

  test('logs neither prompts nor refused values', async () => {
    for (const request of [
      { messages: [{ role: 'user', content: CANARY }], max_tokens: 4 },
      { messages: [{ role: 'user', content: CANARY }], [CANARY]: CANARY },
    ])
      await ask(request, { max_tokens: 4 });
    await expect
      .poll(() => provider.log().filter(({ event, outcome }) => event === 'job' && outcome === 'refused').length)
      .toBeGreaterThan(2);
    expect(provider.stdout + provider.stderr).not.toContain(CANARY);
    expect(JSON.stringify(session.messages)).not.toContain(CANARY);
  });
});

test('a request for an earlier session of a provider opens nothing', async () => {
  const coordinator = await FakeCoordinator.listen();
  const provider = ProviderProcess.start(coordinator.url, ['--simulated-enclave', '--context', '512']);
  try {
    const first = await coordinator.session();
    await first.admit();
    const { sealed } = seal(first, 'pico-demo', { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 4 }, { max_tokens: 4 });
    expect((await first.relay(sealed)).failure).toBeNull();
    first.close();
    const second = await coordinator.session();
    await second.admit();
    expect((await second.relay(sealed)).failure).toEqual({ code: 'unknown_key' });
  } finally {
    await provider.dispose();
    await coordinator.close();
  }
});

describe('a light agent', () => {
  let coordinator: FakeCoordinator;
  let agent: LightAgent;
  let session: FakeProviderSession;

  beforeAll(async () => {
    coordinator = await FakeCoordinator.listen();
    const joining = LightAgent.join({ url: coordinator.url, models: ['light'] });
    session = await coordinator.session();
    await session.admit();
    agent = await joining;
  });
  afterAll(async () => {
    agent.leave();
    await coordinator.close();
  });

  test.each([true, false])('answers by the script, streamed: %s', async (stream) => {
    const script = { words: 5 };
    const sealed = seal(session, 'light', { messages: [{ role: 'user', content: promptOf(script) }], stream });
    const { status, body, receipt } = open(session, sealed, await session.relay(sealed.sealed));
    expect(status).toBe(200);
    if (!stream) expect(JSON.parse(body)).toMatchObject({ choices: [{ message: { content: textOf(script) } }] });
    expect(receipt).toMatchObject({ engine: 'light', usage: { completion_tokens: 5 } });
  });

  test('refuses a request at fault', async () => {
    const sealed = seal(session, 'light', { messages: [{ role: 'user', content: 'Hi' }], temperature: 77 });
    expect(open(session, sealed, await session.relay(sealed.sealed))).toMatchObject({ status: 400, receipt: { finish_reason: 'refused' } });
  });

  test('ends a cancelled stream at its position', async () => {
    const prompt = promptOf({ words: 500, everyMs: 10 });
    const sealed = seal(session, 'light', { messages: [{ role: 'user', content: prompt }], stream: true }, { max_tokens: 1000 });
    const { receipt } = open(session, sealed, await session.relay(sealed.sealed, { cancelAfterBytes: 1 }));
    expect(receipt.finish_reason).toBe('cancelled');
    expect(receipt.usage?.completion_tokens).toBeLessThan(500);
  });
});
