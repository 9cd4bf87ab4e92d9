/**
 * `OnnxBackend` runs latent-diffusion models with ONNX Runtime.
 *
 * A UNet removes noise, step by step, from a small latent image; a VAE decoder turns the latent into pixels. Classifier-free guidance
 * (Ho and Salimans) strengthens the effect of the prompt.
 */
import { availableParallelism } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';
import type { Tensor } from 'onnxruntime-node';
import type { ImageSize } from '../../../models/image/image-facts.js';
import { type OnnxImageModel, readOnnxFolder } from '../../../models/image/onnx-folder.js';
import type { ImageEngineFacts, ImageSettings } from '../../messages.js';
import type { ImageBackend, RawImage, SingleImageRequest } from '../image-backend.js';
import { ClipTokenizer } from './clip-tokenizer.js';
import { Noise } from './noise.js';
import { type Device, type GraphInput, OnnxGraph } from './onnx-graph.js';
import { samplerOf } from './sampler.js';
import { floatsOf, floatTensor, integerTensor } from './tensors.js';

interface Graphs {
  readonly textEncoder: OnnxGraph;
  readonly unet: OnnxGraph;
  readonly vaeDecoder: OnnxGraph;
}

export class OnnxBackend implements ImageBackend {
  readonly facts: ImageEngineFacts;
  readonly #tokenizer: ClipTokenizer;

  private constructor(
    private readonly model: OnnxImageModel,
    private readonly graphs: Graphs,
  ) {
    this.facts = { device: graphs.unet.device };
    this.#tokenizer = new ClipTokenizer(model.vocabulary);
  }

  /** Throws an Error whose message is meant for the Mac's owner. */
  static async load({ modelPath, gpu }: ImageSettings): Promise<OnnxBackend> {
    const model = readOnnxFolder(modelPath);
    const devices: readonly Device[] = gpu === 'auto' && process.platform === 'darwin' ? ['coreml', 'webgpu', 'cpu'] : ['cpu'];
    const threads = Math.max(1, Math.min(MAX_THREADS, availableParallelism() >> 1));
    return new OnnxBackend(model, {
      // Takes milliseconds; a GPU would add rounding differences for no gain.
      textEncoder: await OnnxGraph.load(model.graphs.textEncoder, ['cpu'], threads),
      unet: await OnnxGraph.load(model.graphs.unet, devices, threads),
      vaeDecoder: await OnnxGraph.load(model.graphs.vaeDecoder, devices, threads),
    });
  }

  promptTokens(prompt: string): number {
    return this.#tokenizer.tokenize(prompt).used;
  }

  async generate(request: SingleImageRequest, onStep: (step: number) => void, signal: AbortSignal): Promise<RawImage> {
    const { size, steps, guidance, seed } = request;
    const { channels, scheduler, facts } = this.model;
    const [width, height] = [size.width / facts.scale, size.height / facts.scale];
    const noise = new Noise(seed);
    const sampler = samplerOf(scheduler, steps);
    const latent = noise.fill(new Float32Array(channels * height * width), sampler.firstScale);
    const isGuided = guidance > 1;
    // Guidance also needs the prediction without a prompt.
    const hiddenStates = await this.#encodeTexts(isGuided ? ['', request.prompt] : [request.prompt]);
    try {
      for (let step = 0; step < steps; step++) {
        // Lets a cancel message arrive between two steps.
        await turn();
        signal.throwIfAborted();
        const scale = sampler.inputScale(step);
        const scaled = scale === 1 ? latent : latent.map((value) => value * scale);
        const prediction = await this.#predict(scaled, [channels, height, width], sampler.timesteps[step] as number, hiddenStates);
        sampler.advance(step, latent, isGuided ? applyGuidance(prediction, guidance) : prediction, noise);
        prediction.fill(0);
        onStep(step + 1);
      }
      await turn();
      signal.throwIfAborted();
      return await this.#decode(latent, [channels, height, width], size);
    } finally {
      latent.fill(0);
      for (const state of hiddenStates) state.fill(0);
    }
  }

  async #encodeTexts(texts: readonly string[]): Promise<Float32Array[]> {
    const { textEncoder } = this.graphs;
    const { type } = textEncoder.input('input_ids');
    const states: Float32Array[] = [];
    for (const text of texts) {
      const { ids } = this.#tokenizer.tokenize(text);
      const feeds: Record<string, Tensor> = { input_ids: integerTensor(type, ids, [1, ids.length]) };
      if (textEncoder.inputNames.includes('attention_mask')) {
        const mask = textEncoder.input('attention_mask');
        feeds.attention_mask = integerTensor(
          mask.type,
          ids.map(() => 1),
          [1, ids.length],
        );
      }
      const output = await textEncoder.run(feeds, ({ dims }) => dims.length === 3 && dims[1] === ids.length);
      states.push(Float32Array.from(floatsOf(output)));
      overwrite(output);
    }
    return states;
  }

  /** The UNet's predictions for the latent, one per text, joined. A graph with a fixed batch size of 1 computes them one after another. */
  async #predict(
    latent: Float32Array,
    shape: readonly number[],
    timestep: number,
    hiddenStates: readonly Float32Array[],
  ): Promise<Float32Array> {
    const { unet } = this.graphs;
    const sample = unet.input('sample');
    const batchSize = fixedBatch(sample) === 1 ? 1 : hiddenStates.length;
    const prediction = new Float32Array(hiddenStates.length * latent.length);
    for (let from = 0; from < hiddenStates.length; from += batchSize) {
      const batch = hiddenStates.slice(from, from + batchSize);
      const expectedDims = [batch.length, ...shape];
      const context = unet.input('encoder_hidden_states');
      const tokens = this.model.vocabulary.length;
      const output = await unet.run(
        {
          sample: floatTensor(sample.type, repeatValues(latent, batch.length), expectedDims),
          timestep: timesteps(unet.input('timestep'), timestep, batch.length),
          encoder_hidden_states: floatTensor(context.type, concatValues(batch), [batch.length, tokens, (batch[0]?.length ?? 0) / tokens]),
        },
        ({ dims }) => dims.length === 4 && dims.every((size, index) => size === expectedDims[index]),
      );
      prediction.set(floatsOf(output), from * latent.length);
      overwrite(output);
    }
    return prediction;
  }

  async #decode(latent: Float32Array, shape: readonly number[], { width, height }: ImageSize): Promise<RawImage> {
    const { vaeDecoder } = this.graphs;
    const { scaling, shift } = this.model;
    const [name = 'latent_sample'] = vaeDecoder.inputNames;
    const input = floatTensor(
      vaeDecoder.input(name).type,
      latent.map((value) => value / scaling + shift),
      [1, ...shape],
    );
    const expectedDims = [1, 3, height, width];
    const output = await vaeDecoder.run(
      { [name]: input },
      ({ dims }) => dims.length === 4 && dims.every((size, index) => size === expectedDims[index]),
    );
    const rgb = pixelsOf(floatsOf(output), width * height);
    overwrite(output);
    overwrite(input);
    return { width, height, rgb };
  }
}

/** Further threads gain little: large models are limited by memory bandwidth. */
const MAX_THREADS = 8;

/** Extrapolates from the prediction without a prompt (first half) towards the one with it (second half). */
function applyGuidance(prediction: Float32Array, guidance: number): Float32Array {
  const length = prediction.length / 2;
  const result = new Float32Array(length);
  for (let i = 0; i < length; i++) {
    const without = prediction[i] as number;
    result[i] = without + guidance * ((prediction[length + i] as number) - without);
  }
  return result;
}

/** Converts three planes of values in [-1, 1] to RGB bytes. Throws for NaN. */
function pixelsOf(planes: Float32Array, pixels: number): Uint8Array {
  const rgb = new Uint8Array(3 * pixels);
  for (let colour = 0; colour < 3; colour++) {
    for (let pixel = 0; pixel < pixels; pixel++) {
      const value = planes[colour * pixels + pixel] as number;
      if (Number.isNaN(value)) throw new Error('the model produced NaN instead of pixels');
      rgb[3 * pixel + colour] = Math.max(0, Math.min(255, Math.round(127.5 * (value + 1))));
    }
  }
  return rgb;
}

function fixedBatch({ shape }: GraphInput): number | null {
  return typeof shape[0] === 'number' ? shape[0] : null;
}

/** The timestep as the graph takes it: as a scalar, once for the batch, or once per entry. */
function timesteps(input: GraphInput, timestep: number, batch: number): Tensor {
  if (input.shape.length === 0) return integerTensor(input.type, [timestep], []);
  const count = fixedBatch(input) === 1 ? 1 : batch;
  return integerTensor(input.type, new Array<number>(count).fill(timestep), [count]);
}

function repeatValues(values: Float32Array, times: number): Float32Array {
  return times === 1 ? values.slice() : concatValues(Array.from({ length: times }, () => values));
}

function concatValues(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function overwrite(tensor: Tensor): void {
  const { data } = tensor;
  if (ArrayBuffer.isView(data) && 'fill' in data) (data as Float32Array).fill(0);
}
