/** The ONNX backend in its process, with a model of random weights: same seed same bytes, cancel, crashes, invalid models. */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GraphBuilder } from '../../../../scripts/fixtures/onnx/graph.js';
import { seededRandom } from '../../../../test/support/seeded-random.js';
import type { ImageEngine, ImageEngineStatusEvent } from '../../src/imaging/image-engine.js';
import { ImageJobError } from '../../src/imaging/image-job.js';
import type { ImageRequest } from '../../src/imaging/messages.js';
import { ModelFileError } from '../../src/models/gguf-header.js';
import { readModelFacts } from '../../src/models/model-facts.js';
import { picture, startImageEngine, tinyImageModel } from '../image-model.js';

const model = tinyImageModel();
afterAll(() => model.remove());

const hashes = (images: readonly Uint8Array[]) => images.map((image) => createHash('sha256').update(image).digest('hex'));
const size = (width: number, height = width) => ({ width, height });

describe('drawing', () => {
  let engine: ImageEngine;
  beforeAll(async () => {
    engine = await startImageEngine(model.folder);
  });
  afterAll(() => engine.close());

  const drawn = async (changes: Partial<ImageRequest> = {}) => (await engine.generateImages(picture(changes)).result()).images;

  test('the same seed gives the same bytes, beside any other jobs', async () => {
    const [alone] = hashes(await drawn());
    const others = [drawn({ seed: 2 }), drawn({ prompt: 'another one' }), drawn({ size: size(128, 64) })];
    const again = await drawn();
    expect(hashes(again)).toEqual([alone]);
    const different = (await Promise.all(others)).flatMap(hashes);
    expect(new Set([alone, ...different]).size).toBe(4);
  });

  test('a new process generates the same image', async () => {
    const second = await startImageEngine(model.folder);
    const { images } = await second.generateImages(picture()).result();
    await second.close();
    expect(hashes(images)).toEqual(hashes(await drawn()));
  });

  test('several images use consecutive seeds', async () => {
    const [first, second, third] = hashes(await drawn({ count: 3, seed: 5 }));
    expect(new Set([first, second, third]).size).toBe(3);
    expect([second, third]).toEqual([...hashes(await drawn({ seed: 6 })), ...hashes(await drawn({ seed: 7 }))]);
  });

  test('without a seed every image differs', async () => {
    const all = hashes([...(await drawn({ seed: null })), ...(await drawn({ seed: null }))]);
    expect(all[0]).not.toBe(all[1]);
  });

  test('seeds cover all 64-bit integers', async () => {
    const all = await Promise.all([drawn({ seed: 2 ** 63 }), drawn({ seed: -(2 ** 63) }), drawn({ seed: 0 })]);
    expect(new Set(all.flatMap(hashes)).size).toBe(3);
  });

  test('steps, guidance and prompt each change the image', async () => {
    const all = await Promise.all([drawn(), drawn({ steps: 2 }), drawn({ guidance: 1 }), drawn({ guidance: 5 }), drawn({ prompt: 'x' })]);
    expect(new Set(all.flatMap(hashes)).size).toBe(5);
  });

  test('images have the requested size and format, without metadata', async () => {
    const [png = new Uint8Array()] = await drawn({ size: size(128, 64) });
    expect(Buffer.from(png.subarray(0, 8))).toEqual(Buffer.from('89504e470d0a1a0a', 'hex'));
    const view = Buffer.from(png);
    expect([view.readUInt32BE(16), view.readUInt32BE(20)]).toEqual([128, 64]);
    const chunks: string[] = [];
    for (let at = 8; at < view.length; at += 12 + view.readUInt32BE(at)) chunks.push(view.toString('latin1', at + 4, at + 8));
    // Of the optional PNG chunks, only the physical pixel size, equal for all images.
    expect(chunks.filter((name) => !['IHDR', 'IDAT', 'IEND', 'pHYs'].includes(name))).toEqual([]);

    const [jpeg = new Uint8Array()] = await drawn({ encoding: 'jpeg', quality: 90 });
    const [smaller = new Uint8Array()] = await drawn({ encoding: 'jpeg', quality: 0 });
    expect([jpeg[0], jpeg[1], jpeg.length > smaller.length]).toEqual([0xff, 0xd8, true]);
    expect(Buffer.from(jpeg).includes('Exif')).toBe(false);
    const [webp = new Uint8Array()] = await drawn({ encoding: 'webp' });
    expect(Buffer.from(webp).toString('latin1', 0, 16)).toMatch(/^RIFF....WEBPVP8/s);
  });

  test('reports the prompt tokens and every step', async () => {
    const drawing = engine.generateImages(picture({ count: 2, steps: 3 }));
    const steps: string[] = [];
    drawing.onProgress = ({ image, step, steps: of }) => steps.push(`${image}: ${step}/${of}`);
    // Begin, `a`, `red`, six letters of an unknown word, end.
    expect((await drawing.result()).promptTokens).toBe(10);
    expect(steps).toEqual(['0: 1/3', '0: 2/3', '0: 3/3', '1: 1/3', '1: 2/3', '1: 3/3']);
  });

  test('truncates an overlong prompt', async () => {
    const long = 'red '.repeat(8000);
    const { promptTokens } = await engine.generateImages(picture({ prompt: long })).result();
    expect(promptTokens).toBe(77);
    expect(hashes(await drawn({ prompt: long }))).toEqual(hashes(await drawn({ prompt: `${'red '.repeat(75)}and more` })));
  });

  test('a cancelled job ends before its next step, and queued jobs run', async () => {
    const endless = engine.generateImages(picture({ steps: 100_000 }));
    const waiting = engine.generateImages(picture());
    const dropped = engine.generateImages(picture());
    let last = 0;
    endless.onProgress = ({ step }) => {
      last = step;
      if (step === 3) {
        dropped.cancel();
        endless.cancel();
      }
    };
    await expect(endless.result()).rejects.toMatchObject({ end: { kind: 'cancelled' } });
    expect(last).toBeLessThan(1000);
    await expect(dropped.result()).rejects.toBeInstanceOf(ImageJobError);
    expect(hashes((await waiting.result()).images)).toEqual(hashes(await drawn()));
  });
});

describe('other models of the family', () => {
  test.each([
    ['v_prediction', { scheduler: { prediction_type: 'v_prediction' } }],
    ['DDIM', { scheduler: { _class_name: 'DDIMScheduler', clip_sample: false, timestep_spacing: 'leading', steps_offset: 1 } }],
    ['DDPM', { scheduler: { _class_name: 'DDPMScheduler', clip_sample: false } }],
    ['ancestral Euler', { scheduler: { _class_name: 'EulerAncestralDiscreteScheduler' } }],
    ['a flow', { scheduler: { _class_name: 'FlowMatchEulerDiscreteScheduler', shift: 3 } }],
    ['a timestep that is a float', { timestep: 'float32' as const }],
  ])('generates repeatably with %s', async (_what, options) => {
    const other = tinyImageModel(options);
    const engine = await startImageEngine(other.folder);
    const [first, second] = await Promise.all([engine.generateImages(picture()).result(), engine.generateImages(picture()).result()]);
    await engine.close();
    other.remove();
    expect(hashes(first.images)).toEqual(hashes(second.images));
  });
});

describe('a process that dies', () => {
  test('fails its running jobs and is restarted', async () => {
    const events: ImageEngineStatusEvent[] = [];
    let back: () => void = () => {};
    const again = new Promise<void>((resolve) => (back = resolve));
    const engine = await startImageEngine(
      model.folder,
      {},
      {
        firstRetryMs: 1,
        onEvent: (event) => {
          events.push(event);
          if (event.type === 'ready' && events.some(({ type }) => type === 'died')) back();
        },
      },
    );
    const before = await engine.generateImages(picture()).result();
    const drawing = engine.generateImages(picture({ steps: 100_000 }));
    drawing.onProgress = () => process.kill(engine.pid as number, 'SIGKILL');
    await expect(drawing.result()).rejects.toMatchObject({ end: { kind: 'engine_failed' } });
    await again;
    expect(hashes((await engine.generateImages(picture()).result()).images)).toEqual(hashes(before.images));
    await engine.close();
  });

  test('ends itself above its memory limit', async () => {
    const gone: string[] = [];
    const engine = await startImageEngine(
      model.folder,
      { memoryLimit: 450e6 },
      { giveUpAfter: { deaths: 1, withinMs: 60_000 }, onEvent: (event) => event.type === 'given_up' && gone.push(event.reason) },
    );
    // Attention among 128 x 128 places takes two gigabytes.
    await expect(engine.generateImages(picture({ size: size(1024), steps: 2 })).result()).rejects.toMatchObject({
      end: { kind: 'engine_failed' },
    });
    expect(gone).toHaveLength(1);
    await engine.close();
  });
});

describe('models that are wrong', () => {
  const directories: string[] = [];
  afterEach(() => {
    for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
  });

  /** A copy of the model for damaging. */
  function copy(): string {
    const folder = `${model.folder}-copy-${directories.length}`;
    cpSync(model.folder, folder, { recursive: true });
    directories.push(folder);
    return folder;
  }

  const json = (path: string, changes: object): void =>
    writeFileSync(path, JSON.stringify({ ...(JSON.parse(readFileSync(path, 'utf8')) as object), ...changes }));

  test.each<[string, (folder: string) => void, RegExp]>([
    ['without an index', (folder) => rmSync(join(folder, 'model_index.json')), /holds no image model/],
    ['whose index is no JSON', (folder) => writeFileSync(join(folder, 'model_index.json'), '{'), /is not valid JSON/],
    ['whose index is a list', (folder) => writeFileSync(join(folder, 'model_index.json'), '[]'), /does not have the expected content/],
    ['without a UNet', (folder) => rmSync(join(folder, 'unet/model.onnx')), /unet\/model\.onnx, which is missing/],
    [
      'without a decoder',
      (folder) => rmSync(join(folder, 'vae_decoder'), { recursive: true }),
      /vae_decoder\/model\.onnx, which is missing/,
    ],
    ['without a tokenizer', (folder) => rmSync(join(folder, 'tokenizer'), { recursive: true }), /vocab\.json, which is missing/],
    ['without merges', (folder) => rmSync(join(folder, 'tokenizer/merges.txt')), /merges\.txt, which is missing/],
    ['whose vocabulary lacks the end', (folder) => writeFileSync(join(folder, 'tokenizer/vocab.json'), '{"a":0}'), /lacks the token/],
    ['without a scheduler', (folder) => rmSync(join(folder, 'scheduler'), { recursive: true }), /scheduler_config\.json, which is missing/],
    [
      'of another scheduler',
      (folder) => json(join(folder, 'scheduler/scheduler_config.json'), { _class_name: 'LCMScheduler' }),
      /scheduler that is not supported/,
    ],
    [
      'of a scheduler named like a property',
      (folder) => json(join(folder, 'scheduler/scheduler_config.json'), { _class_name: 'constructor' }),
      /not supported/,
    ],
    [
      'with betas above one',
      (folder) => json(join(folder, 'scheduler/scheduler_config.json'), { beta_end: 2 }),
      /does not have the expected content/,
    ],
    ['with a second text encoder', (folder) => mkdirSync(join(folder, 'text_encoder_2')), /text_encoder_2, which is not supported/],
    [
      'with sizes that it cannot make',
      (folder) => json(join(folder, 'model_index.json'), { _inference: { sizes: ['63x63'] } }),
      /lists no image size that is supported/,
    ],
    ['whose UNet is cut off', (folder) => truncateSync(join(folder, 'unet/model.onnx'), 5000), /is not a valid ONNX file/],
    ['whose UNet is empty', (folder) => truncateSync(join(folder, 'unet/model.onnx'), 0), /does not contain exactly one graph/],
    ['whose UNet is text', (folder) => writeFileSync(join(folder, 'unet/model.onnx'), 'x'.repeat(9999)), /is not a valid ONNX file/],
    [
      'whose parts are swapped',
      (folder) => cpSync(join(folder, 'vae_decoder/model.onnx'), join(folder, 'unet/model.onnx')),
      /do not fit together/,
    ],
    [
      'whose text encoder is of another width',
      (folder) => writeFileSync(join(folder, 'text_encoder/model.onnx'), narrowEncoder()),
      /returns 8 values per token, but the UNet expects 32/,
    ],
    [
      'whose tokenizer is longer',
      (folder) => json(join(folder, 'tokenizer/tokenizer_config.json'), { model_max_length: 64 }),
      /returns 64 tokens, but the text encoder expects 77/,
    ],
  ])('a folder %s is rejected with a sentence, without native code', (_what, spoil, message) => {
    const folder = copy();
    spoil(folder);
    expect(() => readModelFacts(folder)).toThrow(message);
  });

  test.each<[string, (graph: GraphBuilder) => void]>([
    ['says that it has more elements than bytes', (graph) => void graph.constant([1 << 20, 1 << 20], Float32Array.of(1, 2))],
    ['says that it has no end', (graph) => void graph.constant([2 ** 40, 2 ** 40], Float32Array.of(1))],
    ['has a negative size', (graph) => void graph.constant([-4], Float32Array.of(1))],
    ['has twenty dimensions', (graph) => void graph.constant(new Array(20).fill(1), Float32Array.of(1))],
  ])('a file with a tensor that %s is rejected', (_what, spoil) => {
    const folder = copy();
    const graph = new GraphBuilder(1);
    spoil(graph);
    writeFileSync(join(folder, 'unet/model.onnx'), graph.model('unet'));
    expect(() => readModelFacts(folder)).toThrow(/is not a valid ONNX file/);
  });

  test('a folder with files and folders swapped is rejected with a sentence', () => {
    for (const path of ['tokenizer', 'unet', 'scheduler']) {
      const folder = copy();
      rmSync(join(folder, path), { recursive: true });
      writeFileSync(join(folder, path), '');
      expect(() => readModelFacts(folder)).toThrow(ModelFileError);
    }
    const folder = copy();
    rmSync(join(folder, 'unet/model.onnx'));
    mkdirSync(join(folder, 'unet/model.onnx'));
    expect(() => readModelFacts(folder)).toThrow(/missing or cannot be read/);
  });

  test('a randomly damaged file is read, or rejected with a sentence', () => {
    const folder = copy();
    const path = join(folder, 'text_encoder/model.onnx');
    const whole = readFileSync(path);
    const random = seededRandom(8);
    let refused = 0;
    for (let round = 0; round < 300; round++) {
      const bytes = Buffer.from(whole);
      // The graph's own words stand at the beginning and at the end.
      const near = Math.floor(random() * 4000);
      const at = random() < 0.5 ? near : bytes.length - 1 - near;
      for (let change = 0; change <= round % 4; change++) bytes[at + change] = Math.floor(random() * 256);
      writeFileSync(path, random() < 0.1 ? bytes.subarray(0, at) : bytes);
      try {
        readModelFacts(folder);
      } catch (error) {
        expect(error).toBeInstanceOf(ModelFileError);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(20);
  });

  test('a graph rejected by the library is reported in one sentence', async () => {
    const folder = copy();
    const path = join(folder, 'vae_decoder/model.onnx');
    const file = readFileSync(path);
    // An unknown operator in an otherwise valid file.
    const at = file.indexOf('Tanh');
    file.write('Tonh', at);
    writeFileSync(path, file);
    expect(readModelFacts(folder).image).not.toBeNull();
    await expect(startImageEngine(folder)).rejects.toThrow(/cannot be loaded/);
  });

  test('a graph with output of a wrong size fails only its job', async () => {
    const folder = copy();
    const graph = new GraphBuilder(1);
    const latent = graph.input('latent_sample', 'float32', ['batch', 4, 'height', 'width']);
    graph.output('sample', 'float32', ['batch', 3, 'rows', 'columns'], graph.convolution(latent, 4, 3));
    writeFileSync(join(folder, 'vae_decoder/model.onnx'), graph.model('vae_decoder'));
    const engine = await startImageEngine(folder);
    for (let again = 0; again < 2; again++) {
      await expect(engine.generateImages(picture()).result()).rejects.toMatchObject({
        end: { kind: 'engine_failed', message: /another size/ },
      });
    }
    expect(engine.facts).not.toBeNull();
    await engine.close();
  });

  test('a graph with unbounded memory ends only its own process', async () => {
    const folder = copy();
    const graph = new GraphBuilder(1);
    const latent = graph.input('latent_sample', 'float32', ['batch', 4, 'height', 'width']);
    let x = graph.convolution(latent, 4, 3);
    for (let level = 0; level < 11; level++) x = graph.upsample2x(x);
    graph.output('sample', 'float32', ['batch', 3, 'rows', 'columns'], x);
    writeFileSync(join(folder, 'vae_decoder/model.onnx'), graph.model('vae_decoder'));
    const engine = await startImageEngine(folder, { memoryLimit: 1e9 }, { giveUpAfter: { deaths: 1, withinMs: 60_000 } });
    await expect(engine.generateImages(picture({ steps: 1 })).result()).rejects.toMatchObject({ end: { kind: 'engine_failed' } });
    await engine.close();
  });
});

function narrowEncoder(): Buffer {
  const graph = new GraphBuilder(1);
  const ids = graph.input('input_ids', 'int32', ['batch', 77]);
  graph.output('last_hidden_state', 'float32', ['batch', 77, 8], graph.op('Gather', [graph.random([600, 8], 1), ids]));
  return graph.model('text_encoder');
}

test("the folder's description is served", () => {
  const facts = readModelFacts(model.folder);
  expect(facts).toMatchObject({
    id: 'tiny-diffusion',
    displayName: 'Tiny diffusion',
    quantization: '32bit',
    trainedContext: 77,
    embedding: null,
    image: { engine: 'onnx', sizes: [{ width: 64, height: 64 }], steps: 4, guidance: 3, scale: 8 },
  });
  expect(facts.files[0]).toBe(join(model.folder, 'model_index.json'));
  expect(facts.files).toHaveLength(10);
});
