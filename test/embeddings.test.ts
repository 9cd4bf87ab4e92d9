/** Embeddings through a whole network: an embedding model beside a text model, loaded on demand, by the official client. */
import { createHash, createPublicKey, verify } from 'node:crypto';
import { join } from 'node:path';
import { p256PublicKeyPem } from '@inference/protocol/crypto';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { fuzz, sendValidRequests } from './support/fuzz/run.js';
import { runProgram } from './support/program.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const model = 'tiny-embedding';
const directory = temporaryDirectory('embedding-model');
const file = join(directory, 'tiny.gguf');
const demo = new URL('../apps/provider/demo-models/pico/pico.gguf', import.meta.url).pathname;
let network: DemoNetwork;
let dispose: () => Promise<void>;
let text: string;

beforeAll(async () => {
  await runProgram('scripts/make-model.ts', ['--out', file, '--embedding', '--type', 'F32', '--name', 'Tiny embedding']);
  ({ network, dispose } = await startDemoNetwork({ providerArgs: ['--model', demo, '--model', `${file}@on_demand`, '--context', '512'] }));
  text = network.models.find((id) => id !== model) as string;
});
afterAll(() => dispose?.());

const length = (vector: readonly number[]) => Math.hypot(...vector);

it('makes the same unit vectors in either encoding, of texts and of tokens, in their order', async () => {
  const one = await network.openai.embeddings.create({ model, input: 'The sun is a star.', encoding_format: 'float' });
  expect(one).toMatchObject({ object: 'list', model, data: [{ object: 'embedding', index: 0 }] });
  const vector = one.data[0]?.embedding as number[];
  expect(vector).toHaveLength(128);
  expect(length(vector)).toBeCloseTo(1, 5);
  expect(one.usage.prompt_tokens).toBeGreaterThan(0);
  expect(one.usage.total_tokens).toBe(one.usage.prompt_tokens);

  // By default, the client requests base64.
  const many = await network.openai.embeddings.create({ model, input: ['Another text.', 'The sun is a star.'] });
  expect(many.data.map(({ index }) => index)).toEqual([0, 1]);
  expect([...(many.data[1]?.embedding ?? [])].map((value) => Math.fround(value))).toEqual(vector.map((value) => Math.fround(value)));
  expect(many.data[0]?.embedding).not.toEqual(many.data[1]?.embedding);

  const tokens = await network.openai.embeddings.create({ model, input: [[5, 6, 7], [8]], encoding_format: 'float' });
  expect(tokens.data).toHaveLength(2);
  expect((await network.openai.embeddings.create({ model, input: [5, 6, 7], encoding_format: 'float' })).data).toEqual([tokens.data[0]]);
});

it('signs the exact bytes, and bills the tokens of the texts alone', async () => {
  const response = await network.post('/v1/embeddings', { model, input: 'A text to be billed.' });
  expect(response.status).toBe(200);
  const bytes = Buffer.from(await response.arrayBuffer());
  const hash = createHash('sha256').update(bytes).digest('hex');
  expect(response.headers.get('x-response-hash')).toBe(hash);
  const key = createPublicKey(p256PublicKeyPem(Buffer.from(response.headers.get('x-attestation-se-public-key') ?? '', 'base64')));
  expect(verify('sha256', Buffer.from(hash), key, Buffer.from(response.headers.get('x-se-signature') ?? '', 'base64'))).toBe(true);

  const { prompt_tokens } = (JSON.parse(bytes.toString()) as { usage: { prompt_tokens: number } }).usage;
  const usage = await fetch(`${network.baseUrl}/v1/payments/usage?limit=1`, { headers: { authorization: `Bearer ${network.apiKey}` } });
  const [entry] = ((await usage.json()) as { usage: Record<string, unknown>[] }).usage;
  expect(entry).toMatchObject({ model, prompt_tokens, completion_tokens: 0, cost_micro_usd: Math.ceil(prompt_tokens * 0.05) });
});

it.each<[string, () => object, RegExp, string | null]>([
  [
    'an input that is longer than the context',
    () => ({ input: 'word '.repeat(2000) }),
    /maximum context length is \d+ tokens\. However, the request came to \d+/,
    null,
  ],
  ['an empty text', () => ({ input: '' }), /input must be/, 'input'],
  ['an empty list', () => ({ input: [] }), /input must be/, 'input'],
  ['a token that the model does not have', () => ({ input: [2_000_000_000] }), /input is not valid/, 'input'],
  ['mixed inputs', () => ({ input: ['a', 5] }), /input\[1\] must be a text that is not empty/, 'input[1]'],
  ['an encoding that is none', () => ({ input: 'a', encoding_format: 'hex' }), /encoding_format must be/, 'encoding_format'],
  ['a length of vectors that the model cannot do', () => ({ input: 'a', dimensions: 64 }), /dimensions is not offered/, 'dimensions'],
  ['a stream', () => ({ input: 'a', stream: true }), /stream is not supported/, 'stream'],
  ['a model that writes text', () => ({ input: 'a', model: text }), /writes text and makes no vectors/, 'model'],
])('refuses %s with status 400, and names the field', async (_what, body, message, param) => {
  const response = await network.post('/v1/embeddings', { model, ...body() });
  const { error } = (await response.json()) as { error: { message: string; param: string | null } };
  expect({ status: response.status, param: error.param }).toEqual({ status: 400, param });
  expect(error.message).toMatch(message);
});

it('refuses requests for text from an embedding model, in every format', async () => {
  const messages = [{ role: 'user', content: 'Hi' }];
  for (const [path, body] of [
    ['/v1/chat/completions', { messages }],
    ['/v1/completions', { prompt: 'Hi' }],
    ['/v1/responses', { input: 'Hi' }],
    ['/v1/messages', { messages, max_tokens: 5 }],
    ['/v1/messages/count_tokens', { messages }],
  ] as const) {
    const response = await network.post(path, { model, ...body });
    expect([path, response.status]).toEqual([path, 400]);
    expect(await response.text()).toMatch(/This model makes vectors/);
  }
  const error = await network.openai.chat.completions
    .create({ model, messages: [{ role: 'user', content: 'Hi' }] })
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
});

it('serves text from the other model meanwhile, and lists both with what they are for', async () => {
  const [answer] = await Promise.all([
    network.openai.chat.completions.create({
      model: text,
      temperature: 0,
      messages: [{ role: 'user', content: 'What is the capital of France?' }],
    }),
    network.openai.embeddings.create({ model, input: 'meanwhile' }),
  ]);
  expect(answer.choices[0]?.message.content).toContain('Paris');
  const { data } = (await (
    await fetch(`${network.baseUrl}/v1/models`, { headers: { authorization: `Bearer ${network.apiKey}` } })
  ).json()) as { data: { id: string; metadata: { model_type: string } }[] };
  expect(Object.fromEntries(data.map(({ id, metadata }) => [id, metadata.model_type]))).toEqual({ [text]: 'text', [model]: 'embedding' });
});

it('answers fuzzed requests as documented, and goes on', async () => {
  const target = { baseUrl: network.baseUrl, apiKey: network.apiKey, model: text, embeddingModel: model };
  const paths = ['/v1/embeddings'] as const;
  const { faults, statuses } = await fuzz({ ...target, firstSeed: 700_000, cases: 200, paths });
  expect(faults).toEqual([]);
  expect(statuses.get(200)).toBeGreaterThan(20);
  expect(statuses.get(400)).toBeGreaterThan(50);
  expect(new Set(await sendValidRequests(target, paths))).toEqual(new Set([200]));
});
