/** The shipped folder of the demo image model: complete, small, with settings that fit its weights. No image is generated. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';

const MAX_BYTES = 6_000_000;
const folder = dirname(createRequire(import.meta.url).resolve('#demo-image-model'));

function text(path: string): string {
  return readFileSync(join(folder, path), 'utf8');
}

function graph(part: string): Buffer {
  return readFileSync(join(folder, part, 'model.onnx'));
}

it('is found by its import and has every file of the usual layout, in at most 6 MB', () => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => statSync(join(folder, path)).isFile());
  expect(files.toSorted()).toEqual([
    'LICENSE',
    'README.md',
    'model_index.json',
    'scheduler/scheduler_config.json',
    'text_encoder/model.onnx',
    'tokenizer/merges.txt',
    'tokenizer/special_tokens_map.json',
    'tokenizer/tokenizer_config.json',
    'tokenizer/vocab.json',
    'unet/config.json',
    'unet/model.onnx',
    'vae_decoder/config.json',
    'vae_decoder/model.onnx',
  ]);
  const bytes = files.reduce((sum, path) => sum + statSync(join(folder, path)).size, 0);
  expect(bytes).toBeGreaterThan(1_000_000);
  expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
});

it('names its inputs and outputs as pipelines for latent diffusion do', () => {
  const names = {
    text_encoder: ['input_ids', 'last_hidden_state'],
    unet: ['sample', 'timestep', 'encoder_hidden_states', 'out_sample'],
    vae_decoder: ['latent_sample', 'sample'],
  };
  for (const [part, expected] of Object.entries(names)) {
    const bytes = graph(part);
    // A name in the protocol buffer: field 1 as bytes, preceded by its length.
    for (const name of expected)
      expect(bytes.includes(Buffer.from([0x0a, name.length, ...Buffer.from(name)])), `${part}: ${name}`).toBe(true);
  }
});

it('has a tokenizer whose merges are all tokens, and which knows each colour and shape as one token', () => {
  const ids: Record<string, number> = JSON.parse(text('tokenizer/vocab.json'));
  expect(new Set(Object.values(ids)).size).toBe(Object.keys(ids).length);
  const merges = text('tokenizer/merges.txt').trim().split('\n').slice(1);
  expect(merges.length).toBeGreaterThan(100);
  for (const pair of merges) expect(ids).toHaveProperty([pair.replace(' ', '')]);
  for (const word of ['red', 'turquoise', 'background', 'circle', 'triangle', 'heart', 'left']) expect(ids).toHaveProperty([`${word}</w>`]);
  const config = JSON.parse(text('tokenizer/tokenizer_config.json'));
  expect(config).toMatchObject({ tokenizer_class: 'CLIPTokenizer', bos_token: '<|startoftext|>', eos_token: '<|endoftext|>' });
  expect(ids).toHaveProperty([config.bos_token]);
  expect(ids).toHaveProperty([config.eos_token]);
});

it('offers sizes that its UNet can halve, its own first', () => {
  const { _inference: settings } = JSON.parse(text('model_index.json'));
  const { sample_size: side } = JSON.parse(text('unet/config.json'));
  expect(settings.sizes[0]).toBe(`${8 * side}x${8 * side}`);
  for (const size of settings.sizes) for (const length of size.split('x').map(Number)) expect(length % 32).toBe(0);
  expect(settings.num_inference_steps).toBeGreaterThanOrEqual(2);
});
