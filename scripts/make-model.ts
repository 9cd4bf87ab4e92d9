/**
 * Creates a GGUF model with random weights, of any size and context length, for tests and benches. Equal arguments give equal files.
 *
 * Weights are streamed to disk, so memory use does not grow with the model.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import {
  type Architecture,
  type DecoderShape,
  decoderMetadata,
  decoderTensors,
  parameterCount,
  type TensorSlot,
} from './fixtures/gguf/decoder.js';
import { BLOCK, type TensorType } from './fixtures/gguf/encode.js';
import { plainVocabulary, SPECIAL_TOKENS, tokenizerMetadata, type Vocabulary } from './fixtures/gguf/tokenizer.js';
import { trainVocabulary } from './fixtures/gguf/train-vocabulary.js';
import { integer, type Tensor, writeGguf } from './fixtures/gguf/writer.js';
import { randomChunks } from './fixtures/random.js';

const HELP = `Makes a GGUF model with random weights.

  npx tsx scripts/make-model.ts --out file.gguf [options]

  --preset tiny|60m|1b   sizes to start from (default tiny); the options below change them
  --arch llama|qwen3     architecture (default llama)
  --layers N             layers
  --dim N                width of the embedding
  --heads N              attention heads
  --kv-heads N           key and value heads; divides the number of heads
  --ff N                 width of the feed-forward part
  --context N            context length in tokens, also as 128k
  --type F16|Q8_0|F32    how the matrices are stored (default F16)
  --seed N               seed of the weights (default 1)
  --text FILE            learn the vocabulary from this text (may be given again), so that prompts come to as many tokens
                         as with a real model (default: bytes and a few words)
  --vocabulary N         size of a learned vocabulary (default 8192)
  --endless              special tokens are hardly ever chosen, so that answers run to max_tokens
  --brief                the same, but for the end of the turn: answers end by themselves after about a dozen tokens
  --pre NAME             how texts are taken apart into words, by llama.cpp's name for it (default qwen2)
  --embedding            a model that makes vectors of texts, from the last token (qwen3)
  --name TEXT            general.name (default "Random <size>")
  --help                 this text
`;

interface Sizes {
  layers: number;
  dim: number;
  heads: number;
  kvHeads: number;
  ff: number;
  context: number;
}

const PRESETS = new Map<string, Sizes>([
  ['tiny', { layers: 2, dim: 128, heads: 4, kvHeads: 2, ff: 256, context: 4096 }],
  ['60m', { layers: 13, dim: 640, heads: 10, kvHeads: 5, ff: 1792, context: 8192 }],
  ['1b', { layers: 22, dim: 2048, heads: 32, kvHeads: 8, ff: 5632, context: 32768 }],
]);
const TYPES: readonly TensorType[] = ['F16', 'Q8_0', 'F32'];
const ARCHITECTURES: readonly Architecture[] = ['llama', 'qwen3'];
const MAX_CONTEXT = 16 * 1024 * 1024;

class BadArgument extends Error {}

interface ModelOptions {
  out: string;
  shape: DecoderShape;
  type: TensorType;
  seed: number;
  name: string;
  vocabulary: Vocabulary;
  pre: string;
  ending: Ending;
  isEmbeddingModel: boolean;
}

/** llama.cpp's `LLAMA_POOLING_TYPE_LAST`. */
const POOLING_LAST = 3;

/** When the model ends its answers: at random, almost never, or after about a dozen tokens. */
type Ending = 'random' | 'endless' | 'brief';

/** Output weight of the end-of-turn token in a `brief` model. The token's logit is then the highest in one of twelve steps. */
const BRIEF_WEIGHT = 4;

/** Parses the arguments. Returns undefined for a request for help. */
function readModelOptions(args: string[]): ModelOptions | undefined {
  const values = readOptions(args);
  if (values.help) return undefined;
  if (values.out === undefined) throw new BadArgument('--out is missing: say which file to write');
  if (!existsSync(dirname(values.out))) throw new BadArgument(`--out ${values.out}: its folder does not exist`);
  const preset = PRESETS.get(values.preset ?? 'tiny');
  if (!preset) throw new BadArgument(`--preset ${values.preset} is unknown: use ${[...PRESETS.keys()].join(', ')}`);

  const type = oneOf('type', values.type ?? 'F16', TYPES);
  const sizes = {
    layers: wholeNumber('layers', values.layers, preset.layers),
    dim: wholeNumber('dim', values.dim, preset.dim),
    heads: wholeNumber('heads', values.heads, preset.heads),
    kvHeads: wholeNumber('kv-heads', values['kv-heads'], preset.kvHeads),
    ff: wholeNumber('ff', values.ff, preset.ff),
    context: wholeNumber('context', values.context, preset.context),
  };
  checkSizes(sizes, type);
  if (values.endless && values.brief) throw new BadArgument('--endless and --brief exclude each other');
  const vocabulary = readVocabulary(values.text, wholeNumber('vocabulary', values.vocabulary, 8192));
  const shape: DecoderShape = {
    ...sizes,
    architecture: oneOf('arch', values.arch ?? (values.embedding ? 'qwen3' : 'llama'), ARCHITECTURES),
    headDim: sizes.dim / sizes.heads,
    vocab: vocabulary.tokens.length,
    ropeBase: sizes.context > 32768 ? 1_000_000 : 10_000,
    epsilon: 1e-5,
    tied: false,
  };
  const name = values.name ?? `Random ${sizeLabel(parameterCount(decoderTensors(shape)))}`;
  const ending = values.endless ? 'endless' : values.brief ? 'brief' : 'random';
  return {
    out: values.out,
    shape,
    type,
    seed: wholeNumber('seed', values.seed, 1),
    name,
    vocabulary,
    pre: values.pre ?? 'qwen2',
    ending,
    isEmbeddingModel: values.embedding ?? false,
  };
}

function readVocabulary(files: readonly string[] | undefined, size: number): Vocabulary {
  if (files === undefined) return plainVocabulary();
  const missing = files.find((file) => !existsSync(file));
  if (missing !== undefined) throw new BadArgument(`--text ${missing}: there is no such file`);
  return trainVocabulary(
    files.map((file) => readFileSync(file, 'utf8')),
    size,
  );
}

function readOptions(args: string[]) {
  const option = { type: 'string' } as const;
  const options = {
    out: option,
    preset: option,
    arch: option,
    layers: option,
    dim: option,
    heads: option,
    'kv-heads': option,
    ff: option,
    context: option,
    type: option,
    seed: option,
    name: option,
    vocabulary: option,
    pre: option,
    text: { type: 'string', multiple: true },
    endless: { type: 'boolean' },
    brief: { type: 'boolean' },
    embedding: { type: 'boolean' },
    help: { type: 'boolean' },
  } as const;
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    throw new BadArgument(error instanceof Error ? error.message : String(error));
  }
}

function wholeNumber(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const match = /^(\d{1,9})(k?)$/i.exec(text);
  const value = Number(match?.[1]) * (match?.[2] ? 1024 : 1);
  if (!match || value < 1) throw new BadArgument(`--${name} ${text}: a whole number above 0 is needed`);
  return value;
}

function oneOf<T extends string>(name: string, text: string, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate.toLowerCase() === text.toLowerCase());
  if (!choice) throw new BadArgument(`--${name} ${text} is unknown: use ${choices.join(', ')}`);
  return choice;
}

function checkSizes(sizes: Sizes, type: TensorType): void {
  const { dim, heads, kvHeads, ff, context } = sizes;
  if (dim % (2 * heads) !== 0) throw new BadArgument(`--dim ${dim} must be an even multiple of --heads ${heads}`);
  if (heads % kvHeads !== 0) throw new BadArgument(`--heads ${heads} must be a multiple of --kv-heads ${kvHeads}`);
  if (context > MAX_CONTEXT) throw new BadArgument(`--context ${context} is above ${MAX_CONTEXT}`);
  if (type === 'Q8_0' && (dim % BLOCK !== 0 || ff % BLOCK !== 0)) {
    throw new BadArgument(`--type Q8_0 needs --dim and --ff that are multiples of ${BLOCK}`);
  }
}

function sizeLabel(parameters: number): string {
  if (parameters >= 1e9) return `${(parameters / 1e9).toFixed(1)}B`;
  return parameters >= 1e6 ? `${Math.round(parameters / 1e6)}M` : `${Math.round(parameters / 1e3)}K`;
}

/**
 * Standard deviation that keeps activations near 1 in layers of any size. Output weights have a larger deviation, so that token
 * probabilities differ.
 */
function weightDeviation(slot: TensorSlot): number {
  const inputs = slot.shape[0] ?? 1;
  if (slot.role === 'embedding') return 1;
  return (slot.name === 'output.weight' ? 2 : 1) / Math.sqrt(inputs);
}

/** Scales the output weights of special tokens for `ending`. Zero weights give logit 0; other logits have standard deviation 2. */
function* withEnding(chunks: Iterable<Float32Array>, { shape, vocabulary, ending }: ModelOptions): Iterable<Float32Array> {
  const special = new Set<string>(SPECIAL_TOKENS);
  const scales = vocabulary.tokens.map((token) => {
    if (!special.has(token) || ending === 'random') return 1;
    return ending === 'brief' && token === '<|im_end|>' ? BRIEF_WEIGHT : 0;
  });
  let position = 0;
  for (const chunk of chunks) {
    for (let index = 0; index < chunk.length; index++, position++) {
      chunk[index] = (chunk[index] as number) * (scales[Math.floor(position / shape.dim)] as number);
    }
    yield chunk;
  }
}

function writeModel(options: ModelOptions): void {
  const slots = decoderTensors(options.shape);
  const parameters = parameterCount(slots);
  const tensors = slots.map((slot, index): Tensor => {
    const count = parameterCount([slot]);
    const { name, shape, role } = slot;
    if (role === 'norm') return { name, shape, type: 'F32', chunks: () => [new Float32Array(count).fill(1)] };
    return {
      name,
      shape,
      type: options.type,
      chunks: () => {
        const chunks = randomChunks(count, weightDeviation(slot), options.seed * 10_007 + index);
        return name === 'output.weight' ? withEnding(chunks, options) : chunks;
      },
    };
  });
  const about = { name: options.name, sizeLabel: sizeLabel(parameters), license: 'apache-2.0', type: options.type };
  const template = readFileSync(new URL('../apps/provider/demo-models/pico/chat_template.jinja', import.meta.url), 'utf8');
  const metadata = new Map([
    ...decoderMetadata(options.shape, about),
    ...tokenizerMetadata(options.vocabulary, template.trimEnd(), options.pre),
  ]);
  if (options.isEmbeddingModel) metadata.set(`${options.shape.architecture}.pooling_type`, integer(POOLING_LAST));
  const bytes = writeGguf(options.out, metadata, tensors);
  console.log(`${options.out}: ${parameters} parameters, ${bytes} bytes, context ${options.shape.context}`);
}

try {
  const options = readModelOptions(process.argv.slice(2));
  if (options) writeModel(options);
  else process.stdout.write(HELP);
} catch (error) {
  if (!(error instanceof BadArgument)) throw error;
  process.stderr.write(`make-model: ${error.message}\nSee --help.\n`);
  process.exitCode = 2;
}
