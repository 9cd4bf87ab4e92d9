/**
 * Random-weight model in the shape of Z-Image, as small as stable-diffusion.cpp accepts: transformer, Qwen3-shaped text encoder and
 * autoencoder decoder, about 120 MB. The output is noise, but the code path is that of real models.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RandomTensor, writeRandomTensors } from './writer.js';

/** Sizes of the transformer (width, head, feed-forward) and width of the text encoder. */
const WIDTH = 256;
const HEAD = 128;
const INNER = 768;
const CAPTION = 32;

/** Writes the folder. */
export function writeTinyZImage(folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeRandomTensors(join(folder, 'transformer.safetensors'), transformer(), 1);
  writeRandomTensors(join(folder, 'text-encoder.safetensors'), textEncoder(), 2);
  writeRandomTensors(join(folder, 'autoencoder.safetensors'), autoencoder(), 3);
  const description = {
    engine: 'stable-diffusion.cpp',
    name: 'Tiny Z',
    quantization: '16bit',
    files: { model: 'transformer.safetensors', llm: 'text-encoder.safetensors', vae: 'autoencoder.safetensors' },
    prompt_tokens: 512,
    num_inference_steps: 2,
    guidance_scale: 1,
    sizes: ['64x64', '128x64'],
  };
  writeFileSync(join(folder, 'image-model.json'), `${JSON.stringify(description, null, 2)}\n`);
}

const matrix = (name: string, to: number, from: number): RandomTensor => ({ name, shape: [to, from], scale: 0.7 / Math.sqrt(from) });
const ones = (name: string, size: number): RandomTensor => ({ name, shape: [size], scale: null });
const bias = (name: string, size: number): RandomTensor => ({ name, shape: [size], scale: 0.02 });
const linear = (name: string, to: number, from: number): RandomTensor[] => [matrix(`${name}.weight`, to, from), bias(`${name}.bias`, to)];

function transformer(): RandomTensor[] {
  const block = (at: string, isModulated: boolean): RandomTensor[] => [
    matrix(`${at}.attention.qkv.weight`, 3 * WIDTH, WIDTH),
    matrix(`${at}.attention.out.weight`, WIDTH, WIDTH),
    ones(`${at}.attention.q_norm.weight`, HEAD),
    ones(`${at}.attention.k_norm.weight`, HEAD),
    matrix(`${at}.feed_forward.w1.weight`, INNER, WIDTH),
    matrix(`${at}.feed_forward.w2.weight`, WIDTH, INNER),
    matrix(`${at}.feed_forward.w3.weight`, INNER, WIDTH),
    ...['attention_norm1', 'attention_norm2', 'ffn_norm1', 'ffn_norm2'].map((norm) => ones(`${at}.${norm}.weight`, WIDTH)),
    ...(isModulated ? linear(`${at}.adaLN_modulation.0`, 4 * WIDTH, 256) : []),
  ];
  return [
    ...linear('x_embedder', WIDTH, 64),
    ...linear('t_embedder.mlp.0', WIDTH, 256),
    ...linear('t_embedder.mlp.2', 256, WIDTH),
    ones('cap_embedder.0.weight', CAPTION),
    ...linear('cap_embedder.1', WIDTH, CAPTION),
    bias('cap_pad_token', WIDTH),
    bias('x_pad_token', WIDTH),
    ...block('noise_refiner.0', true),
    ...block('context_refiner.0', false),
    ...block('layers.0', true),
    ...block('layers.1', true),
    ...linear('final_layer.linear', 64, WIDTH),
    ...linear('final_layer.adaLN_modulation.1', WIDTH, 256),
  ];
}

/** The engine knows the number of layers and heads, and the vocabulary; only the width is free. */
function textEncoder(): RandomTensor[] {
  const layer = (index: number): RandomTensor[] => {
    const at = `model.layers.${index}`;
    return [
      matrix(`${at}.self_attn.q_proj.weight`, 4096, CAPTION),
      matrix(`${at}.self_attn.k_proj.weight`, 1024, CAPTION),
      matrix(`${at}.self_attn.v_proj.weight`, 1024, CAPTION),
      matrix(`${at}.self_attn.o_proj.weight`, CAPTION, 4096),
      ones(`${at}.self_attn.q_norm.weight`, 128),
      ones(`${at}.self_attn.k_norm.weight`, 128),
      ones(`${at}.input_layernorm.weight`, CAPTION),
      ones(`${at}.post_attention_layernorm.weight`, CAPTION),
      matrix(`${at}.mlp.gate_proj.weight`, 64, CAPTION),
      matrix(`${at}.mlp.up_proj.weight`, 64, CAPTION),
      matrix(`${at}.mlp.down_proj.weight`, CAPTION, 64),
    ];
  };
  const embedding: RandomTensor = { name: 'model.embed_tokens.weight', shape: [151_936, CAPTION], scale: 0.5 };
  return [embedding, ones('model.norm.weight', CAPTION), ...Array.from({ length: 36 }, (_, index) => layer(index)).flat()];
}

function autoencoder(): RandomTensor[] {
  const convolution = (at: string, to: number, from: number, size = 3): RandomTensor[] => [
    { name: `${at}.weight`, shape: [to, from, size, size], scale: 0.9 / Math.sqrt(from * size * size) },
    bias(`${at}.bias`, to),
  ];
  const norm = (at: string, size: number): RandomTensor[] => [ones(`${at}.weight`, size), bias(`${at}.bias`, size)];
  const residual = (at: string, from: number, to: number): RandomTensor[] => [
    ...norm(`${at}.norm1`, from),
    ...convolution(`${at}.conv1`, to, from),
    ...norm(`${at}.norm2`, to),
    ...convolution(`${at}.conv2`, to, to),
    ...(from === to ? [] : convolution(`${at}.nin_shortcut`, to, from, 1)),
  ];
  const middle = (at: string, width: number): RandomTensor[] => [
    ...residual(`${at}.mid.block_1`, width, width),
    ...norm(`${at}.mid.attn_1.norm`, width),
    ...['q', 'k', 'v', 'proj_out'].flatMap((part) => convolution(`${at}.mid.attn_1.${part}`, width, width, 1)),
    ...residual(`${at}.mid.block_2`, width, width),
  ];
  const factors = [1, 2, 4, 4];
  const decoder: RandomTensor[] = [];
  let width = 4 * 32;
  decoder.push(...convolution('decoder.conv_in', width, 16), ...middle('decoder', width));
  for (const [level, factor] of [...factors.entries()].toReversed()) {
    for (let block = 0; block < 3; block++) {
      decoder.push(...residual(`decoder.up.${level}.block.${block}`, width, 32 * factor));
      width = 32 * factor;
    }
    if (level > 0) decoder.push(...convolution(`decoder.up.${level}.upsample.conv`, width, width));
  }
  decoder.push(...norm('decoder.norm_out', width), ...convolution('decoder.conv_out', 3, width));
  // Unused tensors that the engine requires at their own width.
  const encoder: RandomTensor[] = [];
  width = 128;
  encoder.push(...convolution('encoder.conv_in', width, 3));
  for (const [level, factor] of factors.entries()) {
    for (let block = 0; block < 2; block++) {
      encoder.push(...residual(`encoder.down.${level}.block.${block}`, width, 128 * factor));
      width = 128 * factor;
    }
    if (level < 3) encoder.push(...convolution(`encoder.down.${level}.downsample.conv`, width, width));
  }
  encoder.push(...middle('encoder', width), ...norm('encoder.norm_out', width), ...convolution('encoder.conv_out', 32, width));
  return [...decoder, ...encoder];
}
