/** Images through a whole network: the demo image model beside the text model, asked by the official client, checked by pixels. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recognize } from '../scripts/demo-models/image/recognize.js';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { filesHolding } from './support/files-holding.js';
import { ROOT } from './support/npm-start.js';

const CANARY = 'zanzibarian-pelican';

let network: DemoNetwork;
let dispose: () => Promise<void>;
let model: string;

beforeAll(async () => {
  ({ network, dispose } = await startDemoNetwork({ providerArgs: ['--model', 'demo-text', '--model', 'demo-image', '--context', '512'] }));
  model = network.imageModels[0] as string;
});
afterAll(() => dispose?.());

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const base64 = (image: { b64_json?: string } | undefined): Buffer => Buffer.from(image?.b64_json ?? '', 'base64');

async function seen(bytes: Uint8Array) {
  const { data, info } = await sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  return {
    ...recognize({ width: info.width, height: info.height, rgb: data }),
    width: info.width,
    height: info.height,
    format: info.format,
  };
}

async function draw(changes: object = {}): Promise<Buffer[]> {
  const { data } = await network.openai.images.generate({
    model,
    prompt: 'a red circle on a blue background',
    response_format: 'b64_json',
    size: 'auto',
    ...changes,
  });
  return (data ?? []).map(base64);
}

describe('an image', () => {
  it.each([
    ['inference-verify', process.execPath, ['packages/verifier/bin/inference-verify.js', 'response']],
    ['verify-response.sh', 'scripts/verify-response.sh', []],
  ])('is asked for and verified by %s', async (_, command, args) => {
    const access = ['--base-url', network.baseUrl, '--key', network.apiKey, '--path', '/v1/images/generations'];
    const { stdout } = await promisify(execFile)(command, [...args, ...access], { cwd: ROOT });
    expect(stdout).toMatch(/^verified/m);
  });

  it('is what the prompt asked for, at the address that the signed answer names, and its hash is in the receipt', async () => {
    const { data: answer, response } = await network.openai.images
      .generate({ model, prompt: 'a red circle on a blue background', size: '256x256', seed: 1 } as OpenAI.ImageGenerateParamsNonStreaming)
      .withResponse();
    const address = answer.data?.[0]?.url ?? '';
    expect(address).toMatch(/^http/);
    const fetched = await fetch(address);
    expect([fetched.status, fetched.headers.get('content-type')]).toEqual([200, 'image/png']);
    const bytes = Buffer.from(await fetched.arrayBuffer());
    const { figures, ...whole } = await seen(bytes);
    expect(whole).toMatchObject({ width: 256, height: 256, background: 'blue' });
    expect(figures[0]).toMatchObject({ colour: 'red' });

    const receipt = JSON.parse(Buffer.from(response.headers.get('x-inference-receipt') ?? '', 'base64url').toString());
    expect(receipt).toMatchObject({ model, image_sha256: [sha256(bytes)], overrides: { image_urls: [address] }, usage: { images: 1 } });
    expect(response.headers.get('x-response-hash')).toBe(receipt.response_sha256);
    // Start token, seven words, end token.
    expect(answer.usage).toMatchObject({ input_tokens: 9, output_tokens: 0 });
  });

  it('is the same for the same seed, and another one for another seed', async () => {
    const [first] = await draw({ seed: 11 });
    const [again] = await draw({ seed: 11 });
    const [other] = await draw({ seed: 12 });
    expect(sha256(again as Buffer)).toBe(sha256(first as Buffer));
    expect(sha256(other as Buffer)).not.toBe(sha256(first as Buffer));
  });

  it('comes several at a time, in the size and format that was asked for', async () => {
    const images = await draw({ n: 3, size: '128x128', output_format: 'webp', seed: 1 });
    expect(new Set(images.map(sha256)).size).toBe(3);
    for (const image of images) {
      const { format, width, height } = await sharp(image).metadata();
      expect([format, width, height]).toEqual(['webp', 128, 128]);
    }
  });

  it('stays while text is written beside it', async () => {
    const [images, text] = await Promise.all([
      draw(),
      network.openai.chat.completions.create({
        model: network.models[0] as string,
        temperature: 0,
        messages: [{ role: 'user', content: 'What is the capital of France?' }],
      }),
    ]);
    expect(images).toHaveLength(1);
    expect(text.choices[0]?.message.content).toContain('Paris');
  });
});

it.each<[string, object, string]>([
  ['a size that the model does not make', { size: '1000x1000' }, 'size'],
  ['a size that is none', { size: '0x0' }, 'size'],
  ['too many', { n: 5 }, 'n'],
  ['half of one', { n: 1.5 }, 'n'],
  ['an empty prompt', { prompt: '' }, 'prompt'],
  ['a prompt of 100 kB', { prompt: 'red '.repeat(25_000) }, 'prompt'],
  ['a format that is none', { output_format: 'gif' }, 'output_format'],
])('refuses %s with status 400, and names the field', async (_what, changes, param) => {
  const error = await draw(changes).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
  expect((error as InstanceType<typeof OpenAI.BadRequestError>).param).toBe(param);
});

it('text and images are refused where the model is for the other', async () => {
  const image = await draw({ model: network.models[0] as string }).catch((reason: unknown) => reason);
  expect(image).toBeInstanceOf(OpenAI.BadRequestError);
  const text = await network.openai.chat.completions
    .create({ model, messages: [{ role: 'user', content: 'Hi' }] })
    .catch((reason: unknown) => reason);
  expect(text).toBeInstanceOf(OpenAI.BadRequestError);
});

it('keeps prompts out of every file and log', async () => {
  expect(await draw({ prompt: `a red circle, ${CANARY}` })).toHaveLength(1);
  expect(filesHolding(network.dataDir, CANARY)).toEqual([]);
});

it('a client that leaves ends the drawing', async () => {
  const leaving = new AbortController();
  const request = network.openai.images.generate(
    { model, prompt: 'a green star', size: '384x256', n: 4, quality: 'high' },
    { signal: leaving.signal },
  );
  const refused = request.catch((reason: unknown) => reason);
  setTimeout(() => leaving.abort(), 50);
  expect(await refused).toBeInstanceOf(OpenAI.APIUserAbortError);
  // The slot of the provider is free immediately.
  expect(await draw({ size: '128x128' })).toHaveLength(1);
});
