import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { seededRandom } from '../../../../test/support/seeded-random.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { memoryCeiling, memoryNeed, planCapacity, planModels } from '../../src/models/capacity.js';
import { ModelFileError } from '../../src/models/gguf-header.js';
import { modelFacts, readModelFacts } from '../../src/models/model-facts.js';
import { thinkTagsOf } from '../../src/models/think-tags.js';
import { demoModel } from '../demo-model.js';

const dir = temporaryDirectory('models');

function refusal(bytes: Uint8Array): string {
  const path = join(dir, 'model.gguf');
  writeFileSync(path, bytes);
  try {
    readModelFacts(path);
  } catch (error) {
    if (error instanceof ModelFileError) return error.message;
    throw error;
  }
  return 'accepted';
}

test('facts of the demo model', () => {
  const facts = readModelFacts(demoModel());
  expect(facts).toMatchObject({ quantization: '8bit', thinkTags: { open: '<think>', close: '</think>' } });
  expect(facts.id).toMatch(/^[a-z0-9][a-z0-9._-]*$/);
  expect(facts.trainedContext).toBeGreaterThanOrEqual(1024);
  expect(facts.cacheBytesPerToken).toBeGreaterThan(0);
});

test('damaged, truncated and foreign files are rejected with one sentence', () => {
  const whole = readFileSync(demoModel());
  expect(refusal(new Uint8Array(0))).toMatch(/damaged: it is not a GGUF file/);
  expect(refusal(Buffer.from('not a model at all, but long enough to look at'))).toMatch(/not a GGUF file/);
  expect(refusal(whole.subarray(0, 5000))).toMatch(/its header is incomplete/);
  expect(refusal(whole.subarray(0, whole.length - 1))).toMatch(/it is incomplete: \d+ bytes are missing/);
  const version = Buffer.from(whole);
  version.writeUInt32LE(9, 4);
  expect(refusal(version)).toMatch(/version 9/);
  const counts = Buffer.from(whole);
  counts.writeBigUInt64LE(2n ** 62n, 16);
  expect(refusal(counts)).toMatch(/claims \d+ keys/);
  expect(() => readModelFacts(join(dir, 'missing.gguf'))).toThrow(/there is no model file/);
  expect(() => readModelFacts(dir)).toThrow(ModelFileError);
});

test('random damage to the header is at worst rejected', () => {
  const whole = readFileSync(demoModel());
  const random = seededRandom(1);
  for (let i = 0; i < 60; i++) {
    const damaged = Buffer.from(whole);
    for (let n = 0; n < 4; n++) damaged[Math.floor(random() * 2000)] = Math.floor(random() * 256);
    expect(refusal(damaged)).toEqual(expect.any(String));
  }
});

test("ids come from the model's name, or else from the file's", () => {
  const header = (name?: string) => ({
    values: new Map<string, string | number>([
      ['general.architecture', 'llama'],
      ['llama.context_length', 4096],
      ['general.file_type', 15],
      ...(name === undefined ? [] : ([['general.name', name]] as const)),
    ]),
    arrayLengths: new Map([['tokenizer.ggml.tokens', 10]]),
    fileBytes: 1,
    expertBytes: 0,
  });
  expect(modelFacts('/models/Some Model.Q4_K_M.gguf', header('Qwen3 0.6B Instruct'))).toMatchObject({
    id: 'qwen3-0.6b-instruct',
    quantization: '4bit',
    displayName: 'Qwen3 0.6B Instruct',
  });
  expect(modelFacts('/models/Some Model.Q4_K_M.gguf', header()).id).toBe('some-model.q4_k_m');
  expect(modelFacts('/models/模型.gguf', header('模型')).id).toBe('model');
});

test('think tags are found by either tag', () => {
  expect(thinkTagsOf("{% if '</think>' in content %}")).toEqual({ open: '<think>', close: '</think>' });
  expect(thinkTagsOf("{{- '<|channel>thought\\n<channel|>' -}}")).toEqual({ open: '<|channel>thought', close: '<channel|>' });
  expect(thinkTagsOf("{{- '<|start|>assistant<|channel|>analysis<|message|>' }}")?.close).toMatch(/final<\|message\|>$/);
  expect(thinkTagsOf('plain')).toBeNull();
  expect(thinkTagsOf(null)).toBeNull();
});

test('the context is as long as memory allows with a few slots', () => {
  const model = { ...readModelFacts(demoModel()), trainedContext: 131_072, cacheBytesPerToken: 128 * 1024, fileBytes: 4e9 };
  expect(planCapacity(model, { slots: null, context: null, budget: 0.6 * 64e9 })).toEqual({ slots: 7, contextSize: 32_768 });
  expect(planCapacity(model, { slots: 1, context: null, budget: 40e9 })).toEqual({ slots: 1, contextSize: 131_072 });
  expect(planCapacity({ ...model, cacheBytesPerToken: 512 }, { slots: null, context: null, budget: 0.6 * 16e9 })).toEqual({
    slots: 8,
    contextSize: 131_072,
  });
});

test('slots are fitted to memory unless configured', () => {
  const model = { ...readModelFacts(demoModel()), trainedContext: 32_768, cacheBytesPerToken: 128 * 1024, fileBytes: 4e9 };
  expect(planCapacity(model, { slots: null, context: null, budget: 0.6 * 16e9 })).toEqual({ slots: 5, contextSize: 8192 });
  expect(planCapacity(model, { slots: null, context: null, budget: 0.6 * 8e9 })).toEqual({ slots: 1, contextSize: 4096 });
  expect(planCapacity(model, { slots: 12, context: 65_536, budget: 0.6 * 8e9 })).toEqual({ slots: 12, contextSize: 32_768 });
});

test('a quantized cache makes room for more slots and tokens', () => {
  const model = { ...readModelFacts(demoModel()), trainedContext: 131_072, cacheBytesPerToken: 128 * 1024, fileBytes: 4e9 };
  const plan = (kvCacheType: 'f16' | 'q8_0', facts = model) =>
    planCapacity(facts, { slots: null, context: null, budget: 0.6 * 32e9, kvCacheType });
  expect(plan('f16')).toEqual({ slots: 6, contextSize: 16_384 });
  expect(plan('q8_0')).toEqual({ slots: 6, contextSize: 32_768, kvCacheType: 'q8_0' });
  const capacity = { slots: 4, contextSize: 32_768 };
  const cache = (kvCacheType: 'f16' | 'q8_0') =>
    memoryNeed(model, { ...capacity, kvCacheType }) - memoryNeed(model, { slots: 0, contextSize: 0 });
  expect(cache('q8_0') / cache('f16')).toBeCloseTo(34 / 64);
  // Heads whose keys fill no whole blocks.
  expect(plan('q8_0', { ...model, canQuantizeCache: false })).toEqual(plan('f16'));
});

test.each([
  ['llama', 128, {}, true],
  ['llama', 80, {}, false],
  ['llama', 128, { 'attention.value_length': 48 }, false],
  ['gemma3', 256, { 'attention.key_length_swa': 40 }, false],
  // llama.cpp has no flash attention for this architecture.
  ['grok', 128, {}, false],
])('%s with heads of %i and %j: the cache can be quantized: %s', (architecture, headSize, more, expected) => {
  const values = { context_length: 4096, embedding_length: 4 * headSize, 'attention.head_count': 4, block_count: 2, ...more };
  const header = {
    values: new Map<string, string | number>([
      ['general.architecture', architecture],
      ...Object.entries(values).map(([key, value]) => [`${architecture}.${key}`, value] as const),
    ]),
    arrayLengths: new Map([['tokenizer.ggml.tokens', 10]]),
    fileBytes: 1,
    expertBytes: 0,
  };
  expect(modelFacts('/models/x.gguf', header).canQuantizeCache).toBe(expected);
});

const gigabyte = 1e9;
const model = (fileBytes: number, isAlwaysLoaded = false) => ({
  facts: { ...readModelFacts(demoModel()), trainedContext: 32_768, cacheBytesPerToken: 128 * 1024, fileBytes },
  isAlwaysLoaded,
});

test('two fifths of memory, or the configured reserve, stay free', () => {
  expect(memoryCeiling(64e9, null)).toBeCloseTo(38.4e9);
  expect(memoryCeiling(64e9, 8e9)).toBe(56e9);
  expect(memoryCeiling(8e9, 16e9)).toBe(0);
  expect(memoryCeiling(0, null)).toBe(Number.POSITIVE_INFINITY);
});

test('models that fit together are planned to stay together', () => {
  const plans = planModels([model(4 * gigabyte, true), model(8 * gigabyte), model(2 * gigabyte)], {
    ceiling: 38e9,
    slots: 2,
    context: 8192,
  });
  expect(plans.map(({ capacity }) => capacity)).toEqual(Array(3).fill({ slots: 2, contextSize: 8192 }));
  expect(plans.reduce((sum, { need }) => sum + need, 0)).toBeLessThan(38e9);
  for (const { need, max } of plans) expect(need).toBeLessThanOrEqual(max);
  const unwished = planModels([model(4 * gigabyte), model(8 * gigabyte)], { ceiling: 38e9, slots: null, context: null });
  expect(unwished.reduce((sum, { need }) => sum + need, 0)).toBeLessThanOrEqual(38e9);
});

test('models that do not fit together take turns, and oversized models are detected before loading', () => {
  const ceiling = 20e9;
  const [small, large, huge] = planModels([model(4 * gigabyte, true), model(12 * gigabyte), model(40 * gigabyte)], {
    ceiling,
    slots: null,
    context: null,
  });
  expect(small?.need).toBeLessThanOrEqual(ceiling);
  expect(huge?.need).toBeGreaterThan(huge?.max ?? 0);
  expect(large?.max).toBe(ceiling - (small?.need ?? 0));
  const requested = planModels([model(4 * gigabyte)], { ceiling: 8e9, slots: 8, context: 32_768 });
  expect(requested[0]?.need).toBeGreaterThan(8e9);
  expect(memoryNeed(model(4 * gigabyte).facts, { slots: 1, contextSize: 1024 })).toBeLessThan(8e9);
});
