/**
 * Latent-diffusion model with random weights in the usual ONNX folder layout. The output is meaningless, but all parts of a real
 * model are present: text encoder, UNet with attention to the prompt, decoder, tokenizer, scheduler.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { GraphBuilder } from './graph.js';

export interface TinyDiffusion {
  readonly name?: string;
  /** Native width and height of the latent. Images are eight times larger. */
  readonly sampleSize?: number;
  readonly scheduler?: Readonly<Record<string, unknown>>;
  readonly inference?: Readonly<Record<string, unknown>>;
  /** Type of the timestep; exporters use either. */
  readonly timestep?: 'int64' | 'float32';
}

const WIDTH = 32;
const CHANNELS = 32;
const TIME = 64;
const LENGTH = 77;
const LATENT = 4;

/** Writes the folder. */
export function writeTinyDiffusion(folder: string, options: TinyDiffusion = {}): void {
  const { name = 'Tiny diffusion', sampleSize = 8, inference = { num_inference_steps: 4, guidance_scale: 3 } } = options;
  const write = (path: string, content: Uint8Array | string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  };
  const json = (path: string, value: unknown): void => write(path, `${JSON.stringify(value, null, 2)}\n`);
  const vocabulary = tinyVocabulary();
  json('model_index.json', { _class_name: 'OnnxStableDiffusionPipeline', _name: name, _inference: inference });
  json('tokenizer/vocab.json', Object.fromEntries(vocabulary.map((word, id) => [word, id])));
  write('tokenizer/merges.txt', `#version: 0.2\n${MERGES.join('\n')}\n`);
  json('tokenizer/tokenizer_config.json', {
    tokenizer_class: 'CLIPTokenizer',
    model_max_length: LENGTH,
    bos_token: '<|startoftext|>',
    eos_token: '<|endoftext|>',
    pad_token: '<|endoftext|>',
  });
  json('scheduler/scheduler_config.json', {
    _class_name: 'EulerDiscreteScheduler',
    num_train_timesteps: 1000,
    beta_start: 0.00085,
    beta_end: 0.012,
    beta_schedule: 'scaled_linear',
    prediction_type: 'epsilon',
    timestep_spacing: 'linspace',
    ...options.scheduler,
  });
  json('unet/config.json', { sample_size: sampleSize, in_channels: LATENT, cross_attention_dim: WIDTH });
  json('vae_decoder/config.json', { scaling_factor: 0.18215, block_out_channels: [1, 1, 1, 1] });
  write('text_encoder/model.onnx', textEncoder(vocabulary.length));
  write('unet/model.onnx', unet(options.timestep ?? 'int64'));
  write('vae_decoder/model.onnx', vaeDecoder());
}

/** Merged pairs: those of `red` and `blue`. */
const MERGES = ['r e', 're d</w>', 'b l', 'u e</w>', 'bl ue</w>'];

function tinyVocabulary(): string[] {
  const isVisible = (byte: number): boolean => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let hidden = 0;
  const letters = Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isVisible(byte) ? byte : 256 + hidden++));
  return [
    ...letters,
    ...letters.map((letter) => `${letter}</w>`),
    ...MERGES.map((pair) => pair.replace(' ', '')),
    '<|startoftext|>',
    '<|endoftext|>',
  ];
}

function textEncoder(words: number): Buffer {
  const graph = new GraphBuilder(1);
  const ids = graph.input('input_ids', 'int32', ['batch', LENGTH]);
  let x = graph.op('Add', [graph.op('Gather', [graph.random([words, WIDTH], 1), ids]), graph.random([LENGTH, WIDTH], 0.3)]);
  for (let layer = 0; layer < 2; layer++) {
    const normed = graph.layerNorm(x, WIDTH);
    const [query, key, value] = [0, 1, 2].map(() => graph.linear(normed, WIDTH, WIDTH)) as [string, string, string];
    x = graph.op('Add', [x, graph.linear(graph.attention(query, key, value, WIDTH, 2), WIDTH, WIDTH)]);
    const wide = graph.silu(graph.linear(graph.layerNorm(x, WIDTH), WIDTH, 2 * WIDTH));
    x = graph.op('Add', [x, graph.linear(wide, 2 * WIDTH, WIDTH)]);
  }
  graph.output('last_hidden_state', 'float32', ['batch', LENGTH, WIDTH], graph.layerNorm(x, WIDTH));
  return graph.model('text_encoder');
}

function unet(timestep: 'int64' | 'float32'): Buffer {
  const graph = new GraphBuilder(2);
  const sample = graph.input('sample', 'float32', ['batch', LATENT, 'height', 'width']);
  graph.input('timestep', timestep, ['batch']);
  const context = graph.input('encoder_hidden_states', 'float32', ['batch', LENGTH, WIDTH]);
  const half = TIME / 2;
  const frequencies = graph.constant(
    [1, half],
    Float32Array.from({ length: half }, (_, index) => Math.exp((-Math.log(10_000) * index) / half)),
  );
  const seconds = graph.op('Unsqueeze', [graph.op('Cast', ['timestep'], { to: 1 }), graph.integers([1])]);
  const angles = graph.op('Mul', [seconds, frequencies]);
  const waves = graph.op('Concat', [graph.op('Cos', [angles]), graph.op('Sin', [angles])], { axis: 1 });
  const time = graph.linear(graph.silu(graph.linear(waves, TIME, TIME)), TIME, TIME);
  const residual = (x: string, from: number, to: number): string => {
    let h = graph.convolution(graph.silu(graph.groupNorm(x, 8)), from, to);
    h = graph.op('Add', [h, graph.op('Reshape', [graph.linear(graph.silu(time), TIME, to), graph.integers([0, 0, 1, 1])])]);
    h = graph.convolution(graph.silu(graph.groupNorm(h, 8)), to, to);
    return graph.op('Add', [from === to ? x : graph.convolution(x, from, to, 1), h]);
  };
  const attending = (x: string, channels: number): string => {
    const flat = graph.op('Reshape', [graph.groupNorm(x, 8), graph.integers([0, channels, -1])]);
    let h = graph.op('Transpose', [flat], { perm: [0, 2, 1] });
    const own = graph.layerNorm(h, channels);
    const [query, key, value] = [0, 1, 2].map(() => graph.linear(own, channels, channels)) as [string, string, string];
    h = graph.op('Add', [h, graph.linear(graph.attention(query, key, value, channels, 2), channels, channels)]);
    const asked = graph.linear(graph.layerNorm(h, channels), channels, channels);
    const [word, meaning] = [0, 1].map(() => graph.linear(context, WIDTH, channels)) as [string, string];
    h = graph.op('Add', [h, graph.linear(graph.attention(asked, word, meaning, channels, 2), channels, channels)]);
    const back = graph.op('Transpose', [h], { perm: [0, 2, 1] });
    return graph.op('Add', [x, graph.op('Reshape', [back, graph.op('Shape', [x])])]);
  };
  const first = attending(residual(graph.convolution(sample, LATENT, CHANNELS), CHANNELS, CHANNELS), CHANNELS);
  const low = attending(residual(graph.convolution(first, CHANNELS, 2 * CHANNELS, 3, 2), 2 * CHANNELS, 2 * CHANNELS), 2 * CHANNELS);
  const joined = graph.op('Concat', [graph.doubled(low), first], { axis: 1 });
  const last = attending(residual(joined, 3 * CHANNELS, CHANNELS), CHANNELS);
  const said = graph.convolution(graph.silu(graph.groupNorm(last, 8)), CHANNELS, LATENT);
  graph.output('out_sample', 'float32', ['batch', LATENT, 'height', 'width'], said);
  return graph.model('unet');
}

function vaeDecoder(): Buffer {
  const graph = new GraphBuilder(3);
  let x = graph.convolution(graph.input('latent_sample', 'float32', ['batch', LATENT, 'height', 'width']), LATENT, CHANNELS);
  for (let level = 0; level < 3; level++) {
    x = graph.op('Add', [x, graph.convolution(graph.silu(graph.groupNorm(x, 8)), CHANNELS, CHANNELS)]);
    x = graph.convolution(graph.doubled(x), CHANNELS, CHANNELS);
  }
  graph.output('sample', 'float32', ['batch', 3, 'rows', 'columns'], graph.op('Tanh', [graph.convolution(graph.silu(x), CHANNELS, 3)]));
  return graph.model('vae_decoder');
}
