/**
 * Mixed requests of every endpoint through each SDK in end-to-end mode, on real engines: all verified, charged to the token, and read
 * by nobody else. E2E_REQUESTS=200 sends two hundred per SDK.
 */
import { createVerifiedFetch } from '@inference/client';
import OpenAI from 'openai';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { recognize } from '../scripts/demo-models/image/recognize.js';
import { type AllModelsNetwork, startAllModelsNetwork } from './support/all-models-network.js';
import { filesHolding } from './support/files-holding.js';
import { paidIn, runMix, SDK_NAMES, type SdkName } from './support/sdk-requests/run.js';

const COUNT = Number(process.env.E2E_REQUESTS ?? 16);
const CANARY = 'canary-e7c4d1';

const ENDPOINTS: Readonly<Record<SdkName, readonly string[]>> = {
  openai: ['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/images/generations', '/v1/responses'],
  anthropic: ['/v1/messages', '/v1/messages/count_tokens'],
  vercel: ['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/images/generations', '/v1/messages', '/v1/responses'],
  langchain: ['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/messages', '/v1/responses'],
};

let all: AllModelsNetwork;

beforeAll(async () => {
  all = await startAllModelsNetwork({ providers: 2 });
});
afterAll(() => all?.dispose());

it('embeddings and images are those of plain mode', async () => {
  const { network, models } = all;
  const fetch = createVerifiedFetch({ baseURL: network.baseUrl, policy: { allowSimulated: true } });
  const sealing = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey, fetch, maxRetries: 0 });
  const [vectors, plainVectors] = await Promise.all(
    [sealing, network.openai].map((client) => client.embeddings.create({ model: models.embedding, input: ['One text.', 'Another text.'] })),
  );
  expect(vectors).toEqual(plainVectors);
  const request = {
    model: models.image,
    prompt: 'a red circle on a blue background',
    size: '256x256',
    response_format: 'b64_json',
    seed: 1,
  } as OpenAI.ImageGenerateParamsNonStreaming;
  const [image, plainImage] = await Promise.all([sealing, network.openai].map((client) => client.images.generate(request)));
  expect(image?.data).toEqual(plainImage?.data);
  const picture = sharp(Buffer.from(image?.data?.[0]?.b64_json ?? '', 'base64'))
    .removeAlpha()
    .raw();
  const { data: rgb, info } = await picture.toBuffer({ resolveWithObject: true });
  expect(recognize({ width: info.width, height: info.height, rgb })).toMatchObject({ background: 'blue', figures: [{ colour: 'red' }] });
});

it.each(SDK_NAMES)('of %s', async (sdk) => {
  const { network, customers, models } = all;
  const customer = await customers.customer();
  const options = { sdk, baseUrl: network.baseUrl, apiKey: customer.apiKey, models, canary: CANARY, count: COUNT, seed: 1 };
  const { verified, leftCount, injectedCount, endpoints, problems } = await runMix(options);
  expect(problems).toEqual([]);
  expect(verified.length + leftCount).toBeGreaterThanOrEqual(COUNT);
  expect([...endpoints].sort()).toEqual(ENDPOINTS[sdk]);
  expect(leftCount).toBeGreaterThan(0);
  expect(injectedCount).toBeGreaterThan(0);
  expect(new Set(verified.map(({ provider }) => provider.evidence))).toEqual(new Set(['simulated']));
  expect(await customers.audit(customer, paidIn(verified), leftCount)).toEqual([]);
  expect(await customers.ledgerProblems()).toEqual([]);
  expect(filesHolding(network.dataDir, CANARY)).toEqual([]);
});
