/** Log probabilities of the engine, compared with the softmax over the library's own logits. */
import type { TokenLogprob } from '@inference/formats';
import { getLlama, type Llama, type LlamaContextSequence, LlamaLogLevel, type LlamaModel, type Token } from 'node-llama-cpp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.js';
import type { Sampling } from '../../src/engine/messages.js';
import { ask, collect, demoModel, startDemoEngine } from '../demo-model.js';

const PROMPT = 'Once upon a time there was a';

let engine: Engine;
let llama: Llama;
let model: LlamaModel;
/** Bias against all end tokens, so that no answer is short by chance. */
let endless: [number, number][];
beforeAll(async () => {
  engine = await startDemoEngine(4);
  llama = await getLlama({ gpu: false, build: 'never', progressLogs: false, logLevel: LlamaLogLevel.error, maxThreads: 1 });
  model = await llama.loadModel({ modelPath: demoModel() });
  const tokens: readonly string[] = model.fileInfo.metadata.tokenizer.ggml.tokens;
  endless = [...tokens.keys()].filter((token) => model.isEogToken(token as Token)).map((token) => [token, -100]);
});
afterAll(async () => {
  await engine.close();
  await llama.dispose();
});

function request(sampling: Partial<Sampling>, alternatives: number) {
  return { ...ask('', 12, { logitBias: endless, ...sampling }), prompt: { type: 'text', text: PROMPT }, logprobs: alternatives } as const;
}

async function logprobsOf(sampling: Partial<Sampling>, alternatives: number): Promise<readonly TokenLogprob[]> {
  const logprobs: TokenLogprob[] = [];
  for await (const batch of engine.generate(request(sampling, alternatives))) {
    for (const piece of batch) logprobs.push(...(piece.logprobs ?? []));
  }
  return logprobs;
}

/** The model's own log probabilities of the next token. */
async function softmaxAfter(sequence: LlamaContextSequence, tokens: readonly Token[]): Promise<[Token, number][]> {
  const last = tokens.length - 1;
  const input = tokens.map((token, index): Token | [Token, object] =>
    index === last ? [token, { generateNext: { probabilities: true, options: { temperature: 0 } } }] : token,
  );
  const outputs = await sequence.controlledEvaluate(input as Parameters<LlamaContextSequence['controlledEvaluate']>[0]);
  const probabilities = outputs[last]?.next.probabilities ?? new Map<Token, number>();
  return [...probabilities].map(([token, probability]): [Token, number] => [token, Math.log(probability)]).sort((a, b) => b[1] - a[1]);
}

test.each<[string, Partial<Sampling>]>([
  ['the most likely tokens', {}],
  ['hot tokens', { temperature: 2, topP: 0.95, topK: 50 }],
  ['seeded tokens with penalties', { temperature: 1, seed: 7, frequencyPenalty: 1, presencePenalty: 1 }],
])('of %s are those of the raw softmax', async (_what, sampling) => {
  const logprobs = await logprobsOf(sampling, 20);
  expect(logprobs).toHaveLength(12);
  const context = await model.createContext({ contextSize: 256, threads: 1 });
  const sequence = context.getSequence();
  try {
    let tokens = model.tokenize(PROMPT);
    for (const { token: text, bytes, logprob, top_logprobs } of logprobs) {
      const expected = await softmaxAfter(sequence, tokens);
      expect(top_logprobs).toHaveLength(20);
      for (const [place, other] of top_logprobs.entries()) expect(other.logprob).toBeCloseTo(expected[place]?.[1] as number, 3);
      expect([...Buffer.from(text)]).toEqual(bytes);
      const chosen = expected.find(([each, value]) => Math.abs(value - logprob) < 1e-3 && model.detokenize([each], false, tokens) === text);
      expect(chosen, text).toBeDefined();
      tokens = [chosen?.[0] as Token];
    }
  } finally {
    await context.dispose();
  }
});

test('come in any number, likeliest first, without changing the text', async () => {
  const sampling = { temperature: 1, seed: 3 };
  const plain = await collect(engine.generate({ ...request(sampling, 0), logprobs: null }));
  for (const alternatives of [0, 1, 5]) {
    const logprobs = await logprobsOf(sampling, alternatives);
    expect(logprobs.map(({ token }) => token).join('')).toBe(plain.text);
    for (const { top_logprobs } of logprobs) {
      expect(top_logprobs).toHaveLength(alternatives);
      expect(top_logprobs.map(({ logprob }) => logprob)).toEqual(top_logprobs.map(({ logprob }) => logprob).sort((a, b) => b - a));
    }
  }
});

test('belong to their own stream while others run', async () => {
  const alone = await logprobsOf({}, 3);
  const together = await Promise.all([
    logprobsOf({}, 3),
    logprobsOf({ temperature: 2 }, 3),
    logprobsOf({}, 3),
    collect(engine.generate(ask('Hi'))),
  ]);
  for (const logprobs of [together[0], together[2]]) {
    expect(logprobs.map(({ token }) => token)).toEqual(alone.map(({ token }) => token));
    for (const [index, { logprob }] of logprobs.entries()) expect(logprob).toBeCloseTo(alone[index]?.logprob as number, 2);
  }
});

test('of a character that is split over tokens add up to its bytes', async () => {
  const faces = { classes: [[0x1f600, 0x1f64f]], rules: [[[~0, ~0, ~0, ~0]]] };
  const logprobs: TokenLogprob[] = [];
  let text = '';
  for await (const batch of engine.generate({ ...ask('Hi', 40, { temperature: 2 }), grammar: faces, logprobs: 0 })) {
    for (const piece of batch) {
      text += piece.text;
      logprobs.push(...(piece.logprobs ?? []));
    }
  }
  expect(logprobs.some(({ token }) => token === '')).toBe(true);
  expect(logprobs.map(({ token }) => token).join('')).toBe(text);
  expect(new TextDecoder().decode(Uint8Array.from(logprobs.flatMap(({ bytes }) => bytes ?? [])))).toBe(text);
});

test('of an answer that is cut off within a character make up its text', async () => {
  const vocabulary: readonly string[] = model.fileInfo.metadata.tokenizer.ggml.tokens;
  // The first byte of a character, repeatedly: each leaves the previous character incomplete.
  const logitBias: [number, number][] = [[vocabulary.indexOf('\u00f0'), 100]];
  const logprobs: TokenLogprob[] = [];
  let text = '';
  for await (const batch of engine.generate({ ...ask('Hi', 5, { logitBias }), logprobs: 0 })) {
    for (const piece of batch) {
      text += piece.text;
      logprobs.push(...(piece.logprobs ?? []));
    }
  }
  expect(text).toBe('\ufffd'.repeat(5));
  expect(logprobs.map(({ token }) => token).join('')).toBe(text);
});
