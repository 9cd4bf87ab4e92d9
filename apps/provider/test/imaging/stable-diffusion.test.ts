/** The engine stable-diffusion.cpp in the Bare runtime, with a model of random weights. Runs where the add-on is installed. */
import { createHash } from 'node:crypto';
import { cpSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeTinyZImage } from '../../../../scripts/fixtures/safetensors/tiny-z-image.js';
import { hasImageAddOn, TEST_ADD_ON } from '../../../../test/support/image-add-on.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import type { ImageEngine } from '../../src/imaging/image-engine.js';
import { readModelFacts } from '../../src/models/model-facts.js';
import { picture, startImageEngine } from '../image-model.js';
import { childrenOf, isAlive } from '../support/provider-process.js';

const directory = temporaryDirectory('z-image');
const folder = join(directory, 'tiny');
writeTinyZImage(folder);

const hash = (bytes: Uint8Array | undefined) =>
  createHash('sha256')
    .update(bytes ?? '')
    .digest('hex');
const settings = { engine: 'stable-diffusion.cpp', addOnPath: TEST_ADD_ON } as const;

describe.skipIf(!hasImageAddOn())('stable-diffusion.cpp', () => {
  let engine: ImageEngine;
  beforeAll(async () => {
    engine = await startImageEngine(folder, settings);
  });
  afterAll(() => engine?.close());

  test('generates: same seed same bytes, other seed other bytes, in the requested size and format', async () => {
    const draw = async (changes: object) =>
      (await engine.generateImages(picture({ steps: 2, guidance: 1, ...changes })).result()).images[0];
    const first = await draw({});
    expect(hash(await draw({}))).toBe(hash(first));
    expect(hash(await draw({ seed: 2 }))).not.toBe(hash(first));
    const wide = Buffer.from((await draw({ size: { width: 128, height: 64 } })) ?? []);
    expect([wide.readUInt32BE(16), wide.readUInt32BE(20)]).toEqual([128, 64]);
    expect(wide.includes('parameters')).toBe(false);
    expect(Buffer.from((await draw({ encoding: 'jpeg' })) ?? []).subarray(0, 2)).toEqual(Buffer.from([0xff, 0xd8]));
  });

  test('reports its steps and stops between them', async () => {
    const drawing = engine.generateImages(picture({ steps: 500, guidance: 1 }));
    const steps: number[] = [];
    drawing.onProgress = ({ step }) => {
      steps.push(step);
      if (step === 2) drawing.cancel();
    };
    await expect(drawing.result()).rejects.toMatchObject({ end: { kind: 'cancelled' } });
    expect(steps.slice(0, 2)).toEqual([1, 2]);
    expect(steps.length).toBeLessThan(400);
    expect((await engine.generateImages(picture({ steps: 2, guidance: 1 })).result()).images).toHaveLength(1);
  });

  test('leaves no process behind when closed or killed', async () => {
    const other = await startImageEngine(folder, settings);
    const [bare] = childrenOf(other.pid as number);
    expect(bare?.command).toContain('worker.cjs');
    await other.close();
    await expect.poll(() => isAlive(bare?.pid as number)).toBe(false);
  });

  test('restarts when its process dies', async () => {
    let back: () => void = () => {};
    const ready = new Promise<void>((resolve) => (back = resolve));
    const events: string[] = [];
    const other = await startImageEngine(folder, settings, {
      firstRetryMs: 1,
      onEvent: ({ type }) => {
        events.push(type);
        if (type === 'ready' && events.includes('died')) back();
      },
    });
    const drawing = other.generateImages(picture({ steps: 500, guidance: 1 }));
    drawing.onProgress = () => {
      for (const { pid } of childrenOf(other.pid as number)) process.kill(pid, 'SIGKILL');
    };
    await expect(drawing.result()).rejects.toMatchObject({ end: { kind: 'engine_failed' } });
    await ready;
    expect((await other.generateImages(picture({ steps: 1, guidance: 1 })).result()).images).toHaveLength(1);
    await other.close();
  });

  test('an invalid model is reported in one sentence', async () => {
    const broken = join(directory, 'broken');
    cpSync(folder, broken, { recursive: true });
    truncateSync(join(broken, 'transformer.safetensors'), 1000);
    await expect(startImageEngine(broken, settings)).rejects.toThrow(/stable-diffusion\.cpp/);
  });
});

test('without the add-on, the error says how to install it', async () => {
  await expect(startImageEngine(folder, { ...settings, addOnPath: null })).rejects.toThrow(/models pull of such a model installs it/);
});

test('a folder describes its model, and an invalid description is rejected', () => {
  expect(readModelFacts(folder)).toMatchObject({
    id: 'tiny-z',
    quantization: '16bit',
    trainedContext: 512,
    image: {
      engine: 'stable-diffusion.cpp',
      steps: 2,
      guidance: 1,
      sizes: [
        { width: 64, height: 64 },
        { width: 128, height: 64 },
      ],
    },
  });
  const file = join(folder, 'image-model.json');
  const description = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  const spoilt = (changes: object) => writeFileSync(file, JSON.stringify({ ...description, ...changes }));
  spoilt({ files: { model: '../transformer.safetensors' } });
  expect(() => readModelFacts(folder)).toThrow(/does not have the expected content/);
  spoilt({ files: { model: 'missing.gguf' } });
  expect(() => readModelFacts(folder)).toThrow(/missing\.gguf, which is missing/);
  spoilt({ sizes: ['65x65'] });
  expect(() => readModelFacts(folder)).toThrow(/no image size that is supported/);
});
