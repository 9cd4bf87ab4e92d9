/** `readOnnxFolder` reads and checks an image model: ONNX files in the folder layout of Hugging Face's diffusers. Uses no native code. */
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { MAX_IMAGE_PIXELS } from '@inference/protocol';
import Type from 'typebox';
import { ModelFileError } from '../gguf-header.js';
import { type ClipVocabulary, readClipVocabulary } from './clip-vocabulary.js';
import { hasFile, readJson } from './folder-file.js';
import type { ImageFacts, ImageSize } from './image-facts.js';
import { type OnnxHeader, type OnnxValue, readOnnxHeader } from './onnx-header.js';
import { readSchedulerConfig, type SchedulerConfig } from './scheduler-config.js';

export interface OnnxImageModel {
  readonly name: string;
  readonly facts: ImageFacts;
  readonly vocabulary: ClipVocabulary;
  readonly scheduler: SchedulerConfig;
  readonly graphs: { readonly textEncoder: string; readonly unet: string; readonly vaeDecoder: string };
  /** Channels of the latent. */
  readonly channels: number;
  /** The decoder's input is `latent / scaling + shift`. */
  readonly scaling: number;
  readonly shift: number;
  /** Type of most weights, such as `float16`. */
  readonly weightType: string;
  /** All files of the model, in a fixed order. */
  readonly files: readonly string[];
  readonly bytes: number;
}

const INDEX = 'model_index.json';
const IndexSchema = Type.Object({
  _class_name: Type.String({ maxLength: 256 }),
  _name: Type.Optional(Type.String({ maxLength: 256 })),
  /** Recommendation of the publisher for this program. Other programs ignore it. */
  _inference: Type.Optional(
    Type.Object({
      num_inference_steps: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
      guidance_scale: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
      sizes: Type.Optional(Type.Array(Type.String({ pattern: '^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$' }), { minItems: 1, maxItems: 64 })),
    }),
  ),
});
const UnetSchema = Type.Object({ sample_size: Type.Optional(Type.Union([Type.Integer({ minimum: 1, maximum: 4096 }), Type.Null()])) });
const VaeSchema = Type.Object({
  scaling_factor: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
  shift_factor: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
  block_out_channels: Type.Optional(Type.Array(Type.Integer(), { minItems: 1, maxItems: 8 })),
});

/** Folders of model families that this program cannot run. */
const UNSUPPORTED_PARTS = ['text_encoder_2', 'transformer', 'prior'];
const DEFAULTS = { steps: 25, guidance: 7.5, latent: 64, scaling: 0.18215, levels: 4 } as const;
/** Minimum native width, in pixels, of models that also support the aspect ratios 3:2 and 2:3. */
const MIN_FLEXIBLE_WIDTH = 256;
const MAX_FILES = 256;

export function isOnnxFolder(path: string): boolean {
  return hasFile(join(path, INDEX));
}

/** Throws {@link ModelFileError}. */
export function readOnnxFolder(folder: string): OnnxImageModel {
  const index = readJson(join(folder, INDEX), IndexSchema);
  for (const part of UNSUPPORTED_PARTS) {
    if (statSync(join(folder, part), { throwIfNoEntry: false }) !== undefined) {
      throw new ModelFileError(
        `the model ${folder} has a part ${part}, which is not supported: a model must have one text encoder and a UNet`,
      );
    }
  }
  const vocabulary = readClipVocabulary(join(folder, 'tokenizer'));
  const scheduler = readSchedulerConfig(join(folder, 'scheduler', 'scheduler_config.json'));
  const graphs = {
    textEncoder: join(folder, 'text_encoder', 'model.onnx'),
    unet: join(folder, 'unet', 'model.onnx'),
    vaeDecoder: join(folder, 'vae_decoder', 'model.onnx'),
  };
  const headers = {
    textEncoder: readOnnxHeader(graphs.textEncoder),
    unet: readOnnxHeader(graphs.unet),
    vaeDecoder: readOnnxHeader(graphs.vaeDecoder),
  };
  const vae = optional(join(folder, 'vae_decoder', 'config.json'), VaeSchema);
  const scale = 2 ** ((vae.block_out_channels?.length ?? DEFAULTS.levels) - 1);
  const latentShape = checkParts(folder, headers, vocabulary.length);
  const files = filesOf(folder, graphs, headers);
  const recommended = index._inference ?? {};
  return {
    name: index._name ?? basename(folder),
    facts: {
      engine: 'onnx',
      sizes: sizesOf(folder, recommended.sizes, latentShape, scale),
      steps: recommended.num_inference_steps ?? DEFAULTS.steps,
      guidance: recommended.guidance_scale ?? DEFAULTS.guidance,
      scale,
    },
    vocabulary,
    scheduler,
    graphs,
    channels: latentShape.channels,
    scaling: vae.scaling_factor ?? DEFAULTS.scaling,
    shift: vae.shift_factor ?? 0,
    weightType: headers.unet.weightType ?? 'float32',
    files,
    bytes: files.reduce((sum, file) => sum + statSync(file).size, 0),
  };
}

interface LatentShape {
  readonly channels: number;
  /** Fixed size of the latent; null if any size is possible. */
  readonly height: number | null;
  readonly width: number | null;
}

/** Checks inputs and outputs of the three graphs, and that each output fits the next input. Returns the shape of the latent. */
function checkParts(
  folder: string,
  headers: Readonly<Record<'textEncoder' | 'unet' | 'vaeDecoder', OnnxHeader>>,
  length: number,
): LatentShape {
  const wrong = (what: string): never => {
    throw new ModelFileError(`the parts of the model ${folder} do not fit together: ${what}`);
  };
  const input = (of: OnnxHeader, name: string, dimensions: number, part: string): OnnxValue => {
    const value = of.inputs.find((one) => one.name === name);
    if (value === undefined || value.shape.length !== dimensions) return wrong(`${part} has no input ${name} of ${dimensions} dimensions`);
    return value;
  };
  const { textEncoder, unet, vaeDecoder } = headers;
  const tokens = input(textEncoder, 'input_ids', 2, 'the text encoder').shape[1] ?? null;
  if (tokens !== null && tokens !== length) wrong(`the tokenizer returns ${length} tokens, but the text encoder expects ${tokens}`);
  const [hidden] = textEncoder.outputs.filter(({ shape }) => shape.length === 3);
  if (hidden === undefined) return wrong('the text encoder has no output of hidden states');
  const sample = input(unet, 'sample', 4, 'the UNet');
  const states = input(unet, 'encoder_hidden_states', 3, 'the UNet');
  if (!unet.inputs.some(({ name }) => name === 'timestep')) wrong('the UNet has no input timestep');
  const others = unet.inputs.filter(({ name }) => !['sample', 'timestep', 'encoder_hidden_states'].includes(name)).map(({ name }) => name);
  if (others.length > 0) wrong(`the UNet requires ${others.join(', ').slice(0, 200)}, which is not supported`);
  const [, , hiddenSize] = hidden.shape;
  const [, , expectedSize] = states.shape;
  if (typeof hiddenSize === 'number' && typeof expectedSize === 'number' && hiddenSize !== expectedSize) {
    wrong(`the text encoder returns ${hiddenSize} values per token, but the UNet expects ${expectedSize}`);
  }
  const latent = vaeDecoder.inputs.find(({ shape }) => shape.length === 4);
  if (latent === undefined || vaeDecoder.inputs.length !== 1) return wrong('the decoder must have a single input, the latent');
  const channels = sample.shape[1] ?? latent.shape[1] ?? 4;
  if (channels > 64 || (latent.shape[1] ?? channels) !== channels)
    wrong('the UNet and the decoder have different numbers of latent channels');
  if (vaeDecoder.outputs.length < 1 || (vaeDecoder.outputs[0]?.shape[1] ?? 3) !== 3)
    wrong('the decoder does not return images with three color channels');
  const fixed = (axis: 2 | 3): number | null => sample.shape[axis] ?? latent.shape[axis] ?? null;
  return { channels, height: fixed(2), width: fixed(3) };
}

/** Supported sizes: the listed ones, or the native size and, for larger models, 3:2 and 2:3. */
function sizesOf(folder: string, listed: readonly string[] | undefined, { height, width }: LatentShape, scale: number): ImageSize[] {
  const config = optional(join(folder, 'unet', 'config.json'), UnetSchema);
  const native: ImageSize = {
    width: (width ?? config.sample_size ?? DEFAULTS.latent) * scale,
    height: (height ?? config.sample_size ?? DEFAULTS.latent) * scale,
  };
  const isFree = width === null && height === null;
  const longSide = (3 * native.width) / 2;
  const wider: ImageSize[] =
    isFree && native.width >= MIN_FLEXIBLE_WIDTH && longSide % 64 === 0
      ? [
          { width: longSide, height: native.height },
          { width: native.width, height: longSide },
        ]
      : [];
  const named = listed?.map((text): ImageSize => {
    const [first = 0, second = 0] = text.split('x').map(Number);
    return { width: first, height: second };
  });
  const sizes = (named ?? [native, ...wider]).filter(
    (size) =>
      size.width % scale === 0 &&
      size.height % scale === 0 &&
      (isFree || (size.width === native.width && size.height === native.height)) &&
      size.width * size.height <= MAX_IMAGE_PIXELS &&
      Math.min(size.width, size.height) >= 10,
  );
  if (sizes.length === 0) throw new ModelFileError(`the model ${folder} lists no image size that is supported`);
  return sizes;
}

/** Every file of the model: the index, the graphs with their weights, and the configurations. */
function filesOf(
  folder: string,
  graphs: OnnxImageModel['graphs'],
  headers: Readonly<Record<keyof OnnxImageModel['graphs'], OnnxHeader>>,
): string[] {
  const files = [join(folder, INDEX)];
  for (const part of ['textEncoder', 'unet', 'vaeDecoder'] as const) {
    files.push(graphs[part], ...headers[part].external.map((name) => join(dirname(graphs[part]), name)));
  }
  for (const part of ['tokenizer', 'scheduler', 'text_encoder', 'unet', 'vae_decoder']) {
    const directory = join(folder, part);
    const small = readdirSync(directory).filter((name) => /\.(?:json|txt)$/.test(name) && hasFile(join(directory, name)));
    files.push(...small.toSorted().map((name) => join(directory, name)));
  }
  if (files.length > MAX_FILES) throw new ModelFileError(`the model ${folder} has too many files`);
  return files;
}

/** The file's content, or an empty object if the file is missing. */
function optional<Schema extends Parameters<typeof readJson>[1]>(path: string, schema: Schema) {
  return hasFile(path) ? readJson(path, schema) : ({} as ReturnType<typeof readJson<Schema>>);
}
