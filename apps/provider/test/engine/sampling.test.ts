/**
 * Sampling against a reference: a model with the same logits after every token, and a reference sampler. Same seed, same tokens,
 * one by one.
 */
import { join } from 'node:path';
import type { TokenLogprob } from '@inference/formats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DecoderShape, decoderMetadata, decoderTensors, parameterCount } from '../../../../scripts/fixtures/gguf/decoder.js';
import { plainVocabulary, tokenizerMetadata } from '../../../../scripts/fixtures/gguf/tokenizer.js';
import { integer, writeGguf } from '../../../../scripts/fixtures/gguf/writer.js';
import { seededRandom } from '../../../../test/support/seeded-random.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { Engine } from '../../src/engine/engine.js';
import { GenerationError } from '../../src/engine/generation.js';
import type { GenerationRequest, Sampling } from '../../src/engine/messages.js';
import { CHATML_TEMPLATE } from '../../src/engine/process/prompt/chat-prompt.js';
import { ask, collect } from '../demo-model.js';

const LETTERS = 'abcdefghijklmnop';
const DIM = 32;
const vocabulary = plainVocabulary();
const idOf = (letter: string) => vocabulary.tokens.indexOf(letter);
const random = seededRandom(5);
/** Logits of the letters; other tokens never occur. */
const LOGITS = new Map([...LETTERS].map((letter) => [idOf(letter), Math.fround(4 * random())]));
const NEVER = -60;
/** The first of three tokens that mark a text to fill in. */
const INFILL = vocabulary.tokens.indexOf('<tools>');

const directory = temporaryDirectory('sampling');
let engine: Engine;
beforeAll(async () => {
  const modelPath = join(directory, 'fixed.gguf');
  writeFixedModel(modelPath);
  engine = await Engine.start({ settings: { modelPath, slots: 4, contextSize: 1024, gpu: 'none' } });
});
afterAll(() => engine.close());

/** Embeddings of ones that pass all layers unchanged, so the logits are the sums of the output's rows. */
function writeFixedModel(path: string): void {
  const shape: DecoderShape = {
    architecture: 'llama',
    layers: 1,
    dim: DIM,
    heads: 1,
    kvHeads: 1,
    headDim: DIM,
    ff: DIM,
    context: 1024,
    vocab: vocabulary.tokens.length,
    ropeBase: 10_000,
    epsilon: 1e-9,
    tied: false,
  };
  const about = { name: 'Fixed', sizeLabel: '1K', license: 'apache-2.0', type: 'F32' } as const;
  const tensors = decoderTensors(shape).map(({ name, shape: dimensions, role }) => {
    const values = new Float32Array(parameterCount([{ name, shape: dimensions, role }]));
    if (role !== 'matrix') values.fill(1);
    if (name === 'output.weight') for (const [i] of values.entries()) values[i] = (LOGITS.get(Math.floor(i / DIM)) ?? NEVER) / DIM;
    return { name, shape: dimensions, type: 'F32' as const, chunks: () => [values] };
  });
  const infill = ['pre', 'suf', 'mid'].map((name, index) => [`tokenizer.ggml.fim_${name}_token_id`, integer(INFILL + index)] as const);
  writeGguf(path, new Map([...decoderMetadata(shape, about), ...tokenizerMetadata(vocabulary, CHATML_TEMPLATE), ...infill]), tensors);
}

/** MT19937, and 53-bit numbers in [0, 1) as C++ creates them (std::uniform_real_distribution). */
class Twister {
  readonly #state = new Uint32Array(624);
  #index = 624;

  constructor(seed: number) {
    this.#state[0] = seed;
    for (let i = 1; i < 624; i++) {
      const before = this.#at(i - 1);
      this.#state[i] = Math.imul(1812433253, before ^ (before >>> 30)) + i;
    }
  }

  uniform(): number {
    const low = this.#next();
    return (low + this.#next() * 2 ** 32) / 2 ** 64;
  }

  #at(index: number): number {
    return this.#state[index % 624] as number;
  }

  #next(): number {
    if (this.#index === 624) this.#twist();
    let y = this.#at(this.#index++);
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  #twist(): void {
    for (let i = 0; i < 624; i++) {
      const y = (this.#at(i) & 0x80000000) | (this.#at(i + 1) & 0x7fffffff);
      this.#state[i] = this.#at(i + 397) ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    this.#index = 0;
  }
}

/** Tokens of the model with their logits, by token id. */
type Candidates = [token: number, logit: number][];

/** The engine's documented chain: bias, penalties, top-k, top-p, min-p, temperature, one draw. */
function draw(candidates: Candidates, sampling: Sampling, history: readonly number[], twister: Twister): number {
  const bias = new Map(sampling.logitBias);
  const count = (token: number) => history.filter((each) => each === token).length;
  let left = candidates.map(([token, logit]): [number, number] => {
    const times = count(token);
    const penalty = times * sampling.frequencyPenalty + (times > 0 ? sampling.presencePenalty : 0);
    const biased = Math.fround(logit + (bias.get(token) ?? 0));
    const repetition = times > 0 ? (sampling.repetitionPenalty ?? 1) : 1;
    return [token, Math.fround((biased > 0 ? biased / repetition : biased * repetition) - penalty)];
  });
  const sorted = () => [...left].sort((a, b) => b[1] - a[1]);
  if (sampling.temperature === 0) return sorted()[0]?.[0] as number;
  if (sampling.topK !== null) left = sorted().slice(0, sampling.topK);
  if (sampling.topP !== null) {
    left = sorted();
    left = left.slice(0, reaching(softmax(left), sampling.topP) + 1);
  }
  if (sampling.minP !== null) {
    const min = Math.max(...left.map(([, logit]) => logit)) + Math.log(sampling.minP);
    left = left.filter(([, logit]) => logit >= min);
  }
  left = left.map(([token, logit]) => [token, logit / sampling.temperature]);
  const uniform = twister.uniform();
  return left[reaching(softmax(left), uniform)]?.[0] as number;
}

/** Index of the first weight at which the sum reaches the goal. */
function reaching(weights: readonly number[], goal: number): number {
  let sum = 0;
  return weights.findIndex((weight) => {
    sum += weight;
    return sum >= goal;
  });
}

function softmax(candidates: Candidates): number[] {
  const max = Math.max(...candidates.map(([, logit]) => logit));
  const weights = candidates.map(([, logit]) => Math.exp(logit - max));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

function expected({ sampling, maxTokens }: GenerationRequest, allowed?: string): string {
  const twister = new Twister(sampling.seed ?? 0);
  const all: Candidates = [...LOGITS].sort(([a], [b]) => a - b);
  const history: number[] = [];
  while (history.length < maxTokens) {
    const first = draw(all, sampling, history, twister);
    const fits = (token: number) => allowed === undefined || allowed.includes(vocabulary.tokens[token] as string);
    // With a grammar, llama.cpp draws once without the grammar, and again after a mismatch.
    history.push(
      fits(first)
        ? first
        : draw(
            all.map(([t, l]) => [t, fits(t) ? l : -Infinity]),
            sampling,
            history,
            twister,
          ),
    );
  }
  return history.map((token) => vocabulary.tokens[token]).join('');
}

test('a suffix comes after the prompt, between the tokens that mark a text to fill in', async () => {
  const request = (text: string, suffix?: string): GenerationRequest => ({
    ...ask('', 8),
    prompt: { type: 'text', text, ...(suffix === undefined ? {} : { suffix }) },
  });
  const { promptTokens: before } = await collect(engine.generate(request('def f():')));
  const { promptTokens: after } = await collect(engine.generate(request('return 1')));
  const filled = request('def f():', 'return 1');
  expect(await collect(engine.generate(filled))).toMatchObject({ promptTokens: before + after + 3, text: expected(filled) });
});

const settings: [string, Partial<Sampling>][] = [
  ['temperature 0', { temperature: 0 }],
  ['temperature 0 with penalties', { temperature: 0, frequencyPenalty: 0.7, presencePenalty: 0.4 }],
  ['temperature 0 with a bias', { temperature: 0, logitBias: [[idOf('c'), 50]] }],
  ['temperature 1', {}],
  ['temperature 0.4', { temperature: 0.4 }],
  ['temperature 2', { temperature: 2 }],
  ['top_k', { topK: 3 }],
  ['top_k 1', { topK: 1 }],
  ['top_p', { topP: 0.6 }],
  ['min_p', { minP: 0.3 }],
  ['min_p 1', { minP: 1 }],
  ['top_k, top_p and min_p', { temperature: 1.7, topK: 9, topP: 0.9, minP: 0.1 }],
  ['frequency_penalty', { frequencyPenalty: 0.5 }],
  ['presence_penalty', { presencePenalty: 1.5 }],
  ['repetition_penalty', { repetitionPenalty: 1.3 }],
  ['temperature 0 with all penalties', { temperature: 0, repetitionPenalty: 1.1, frequencyPenalty: 0.2, presencePenalty: 0.3 }],
  ['rewards', { frequencyPenalty: -0.1, presencePenalty: -1 }],
  [
    'logit_bias',
    {
      logitBias: [
        [idOf('a'), -100],
        [idOf('b'), 3.5],
        [idOf('p'), 2],
      ],
    },
  ],
  [
    'all of them',
    { temperature: 0.9, topK: 12, topP: 0.95, minP: 0.02, frequencyPenalty: 0.2, presencePenalty: 0.3, logitBias: [[idOf('e'), 2]] },
  ],
];

describe('samples equal the samples of the reference', () => {
  test.each(settings)('with %s', async (_what, changes) => {
    for (const seed of [1, 2 ** 31 + 7]) {
      const request = ask('go', 120, { temperature: 1, seed, ...changes });
      expect((await collect(engine.generate(request))).text).toBe(expected(request));
    }
  });

  test('for many streams at once', async () => {
    const requests = settings.map(([, changes], index) => ask('go', 120, { temperature: 1, seed: index, ...changes }));
    const texts = await Promise.all(requests.map(async (request) => (await collect(engine.generate(request))).text));
    expect(texts).toEqual(requests.map((request) => expected(request)));
  });

  test('within a grammar', async () => {
    const allowed = 'bdfh';
    const classes = [[...allowed].flatMap((letter) => [letter.charCodeAt(0), letter.charCodeAt(0)])];
    const rules = [[[~0, 0], [~0]]];
    for (const changes of [{}, { topP: 0.8 }, { temperature: 0 }]) {
      const request = { ...ask('go', 60, { temperature: 1, seed: 9, ...changes }), grammar: { classes, rules } };
      expect((await collect(engine.generate(request))).text).toBe(expected(request, allowed));
    }
  });
});

test('log probabilities belong to the unmodified logits', async () => {
  const logprobs: TokenLogprob[] = [];
  const sampling = { temperature: 2, seed: 4, topK: 9, logitBias: [[idOf('a'), 9]] as const };
  for await (const batch of engine.generate({ ...ask('go', 30, sampling), logprobs: 3 })) {
    for (const piece of batch) logprobs.push(...(piece.logprobs ?? []));
  }
  const all = [...LOGITS];
  const reference = new Map(softmax(all).map((weight, index) => [vocabulary.tokens[all[index]?.[0] as number], Math.log(weight)]));
  const best = [...reference].sort((a, b) => b[1] - a[1]).slice(0, 3);
  expect(logprobs).toHaveLength(30);
  for (const { token, logprob, top_logprobs } of logprobs) {
    expect(logprob).toBeCloseTo(reference.get(token) as number, 4);
    expect(top_logprobs.map((each) => each.token)).toEqual(best.map(([each]) => each));
  }
});

test('a bias for an invalid token id is rejected', async () => {
  const generation = engine.generate(ask('go', 5, { logitBias: [[vocabulary.tokens.length, 1]] }));
  const error: unknown = await collect(generation).catch((thrown: unknown) => thrown);
  expect(error instanceof GenerationError && error.ended).toMatchObject({ kind: 'invalid_request', field: 'logit_bias' });
});
