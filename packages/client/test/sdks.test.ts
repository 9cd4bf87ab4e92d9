/** The official SDKs on a verified fetch, against a scripted network. */
import Anthropic from '@anthropic-ai/sdk';
import { type OpenedE2eRequest, toBase64 } from '@inference/protocol';
import { nodeE2eCrypto } from '@inference/protocol/crypto';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { createVerifiedFetch as createForBrowsers } from '../src/index.js';
import { createVerifiedFetch as createForNode, verdictOf } from '../src/node.js';
import { hello, IMAGES, IMAGES_BODY } from './answers.js';
import { BASE_URL, MODEL, NOW, POLICY, ScriptedNetwork } from './scripted-network.js';

const CANARY = 'a prompt that nobody else reads';
const messages = [{ role: 'user' as const, content: CANARY }];

describe.each([
  ['on node:crypto', createForNode],
  ['on noble', createForBrowsers],
])('a verified fetch %s', (_name, createVerifiedFetch) => {
  function clients(network = new ScriptedNetwork(hello)) {
    const fetch = createVerifiedFetch({ baseURL: `${BASE_URL}/v1`, policy: POLICY, fetch: network.fetch, now: () => NOW });
    return {
      network,
      fetch,
      openai: new OpenAI({ baseURL: `${BASE_URL}/v1`, apiKey: 'sk-test', fetch }),
      anthropic: new Anthropic({ baseURL: BASE_URL, apiKey: 'sk-test', fetch }),
    };
  }

  test('serves the OpenAI SDK: chat, plain and streamed', async () => {
    const { openai, network } = clients();
    const { data, response } = await openai.chat.completions.create({ model: MODEL, messages }).withResponse();
    expect(data.choices[0]?.message.content).toBe('Hello');
    expect(verdictOf(response)).toMatchObject({ state: 'verified', provider: { evidence: 'certified' }, receipt: { model: MODEL } });
    expect(response.headers.get('x-response-hash')).toMatch(/^[0-9a-f]{64}$/);

    const stream = await openai.chat.completions.create({ model: MODEL, messages, stream: true }).withResponse();
    expect(verdictOf(stream.response)).toMatchObject({ state: 'pending' });
    let text = '';
    for await (const chunk of stream.data) text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe('Hello');
    expect(verdictOf(stream.response)).toMatchObject({ state: 'verified' });
    expect(network.opened.map(({ context }) => context.stream)).toEqual([false, true]);
  });

  test('serves the OpenAI SDK: responses, completions, embeddings and lists', async () => {
    const { openai } = clients();
    expect((await openai.responses.create({ model: MODEL, input: CANARY })).output_text).toBe('Hello');
    const events = [];
    for await (const { type } of await openai.responses.create({ model: MODEL, input: CANARY, stream: true })) events.push(type);
    expect(events).toEqual(['response.created', 'response.output_text.delta', 'response.completed']);
    expect((await openai.completions.create({ model: MODEL, prompt: CANARY })).choices[0]?.text).toBe('Hello');
    expect((await openai.embeddings.create({ model: MODEL, input: CANARY })).data[0]?.embedding).toEqual([1, 2]);
    const list = await openai.models.list().withResponse();
    expect(list.data.data[0]?.id).toBe(MODEL);
    expect(verdictOf(list.response)).toEqual({ state: 'unverified' });
  });

  test('serves the Anthropic SDK, plain and streamed', async () => {
    const { anthropic } = clients();
    const body = { model: MODEL, max_tokens: 16, messages };
    expect((await anthropic.messages.create(body)).content).toEqual([{ type: 'text', text: 'Hello' }]);
    const stream = anthropic.messages.stream(body);
    expect((await stream.finalMessage()).content).toMatchObject([{ type: 'text', text: 'Hello' }]);
  });

  test('serves beta requests of the Anthropic SDK, whose query and headers stay here', async () => {
    const { anthropic, network } = clients();
    const { content } = await anthropic.beta.messages.create({ model: MODEL, max_tokens: 16, messages, betas: ['context-1m-2025-08-07'] });
    expect(content).toMatchObject([{ type: 'text', text: 'Hello' }]);
    expect((await anthropic.messages.countTokens({ model: MODEL, messages })).input_tokens).toBe(1);
    const posts = network.received.filter(({ init }) => init.method === 'POST');
    expect(posts.map(({ url }) => url)).toEqual([`${BASE_URL}/v1/e2e/requests`, `${BASE_URL}/v1/e2e/requests`]);
    expect(Object.keys(posts[0]?.init.headers as object).sort()).toEqual(['authorization', 'content-type']);
  });

  test('serves images inside the answer, each committed to in the receipt', async () => {
    const { openai, network } = clients();
    network.answer = () => ({ body: [IMAGES_BODY] });
    const committed = (images: readonly Uint8Array[]) => (opened: OpenedE2eRequest) => ({
      image_commitments: images.map((image, index) => opened.commitments.image(index, nodeE2eCrypto.sha256(image))),
    });
    network.receiptOf = committed(IMAGES);
    const ask = () => openai.images.generate({ model: MODEL, prompt: CANARY, n: 2, response_format: 'b64_json' });
    expect((await ask()).data?.map(({ b64_json }) => b64_json)).toEqual(IMAGES.map((image) => toBase64(image)));
    expect(network.opened[0]?.context).toMatchObject({ images: 2 });
    expect(network.opened[0]?.context).not.toHaveProperty('image_size');
    await openai.images.generate({ model: MODEL, prompt: CANARY, n: 2, size: '256x256', response_format: 'b64_json' });
    expect(network.opened[1]?.context).toMatchObject({ images: 2, image_size: '256x256' });
    network.receiptOf = committed([...IMAGES].reverse());
    await expect(ask()).rejects.toMatchObject({ status: 403, code: 'bad_proof' });
  });

  test('sends nothing outside the seal but the key, and the same to three candidates', async () => {
    const { openai, network } = clients();
    await openai.chat.completions.create({ model: MODEL, messages, max_tokens: 7 }, { headers: { 'X-Secret': CANARY } });
    const [sealed] = network.sealedRequests;
    expect(network.opened[0]?.context).toMatchObject({ model: MODEL, max_tokens: 7, endpoint: '/v1/chat/completions' });
    expect(network.opened[0]?.context.recipients).toHaveLength(3);
    for (const index of [0, 1, 2]) {
      expect(JSON.parse(new TextDecoder().decode(network.open(sealed as Uint8Array, index).opened.body))).toMatchObject({ messages });
    }
    for (const { url, init } of network.received) {
      expect(`${url}${JSON.stringify(init.headers)}`).not.toContain(CANARY);
      expect(Object.keys(init.headers as object).sort()).not.toContain('x-secret');
      if (init.body instanceof Uint8Array) expect(new TextDecoder('latin1').decode(init.body)).not.toContain(CANARY);
    }
    const post = network.received.find(({ init }) => init.method === 'POST');
    expect(Object.keys(post?.init.headers as object).sort()).toEqual(['authorization', 'content-type']);
  });
});
