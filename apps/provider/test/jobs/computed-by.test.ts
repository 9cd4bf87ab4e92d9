import { ReceiptSchema, receiptVersionProblem } from '@inference/protocol';
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { expect, test } from 'vitest';
import { computedBy, decimalText, engineName } from '../../src/jobs/answer/computed-by.js';

const hash = 'a'.repeat(64);
const sampling = { temperature: 1, topP: null, topK: null, minP: null, logitBias: [], seed: null, frequencyPenalty: 0, presencePenalty: 0 };

test('unused parameters are absent', () => {
  const identity = { engine: 'llama.cpp b1 metal', weightsSha256: null, templateSha256: hash };
  expect(computedBy(identity, { usedTemplate: false, sampling: null })).toEqual({ engine: 'llama.cpp b1 metal' });
  expect(computedBy({ ...identity, weightsSha256: hash }, { usedTemplate: true, sampling })).toEqual({
    engine: 'llama.cpp b1 metal',
    weights_sha256: hash,
    template_sha256: hash,
    sampling: { temperature: '1' },
  });
  const penalised = { ...sampling, repetitionPenalty: 1.1 };
  expect(computedBy(identity, { usedTemplate: false, sampling: penalised }).sampling).toEqual({
    temperature: '1',
    repetition_penalty: '1.1',
  });
});

test.each([
  [0.7, '0.7'],
  [-0, '0'],
  [1e-7, '0.0000001'],
  [-2, '-2'],
  [5e-324, '0'],
  [-1e-30, '0'],
  [2 ** 63, '9223372036854776000'],
  [0.1 + 0.2, '0.30000000000000004'],
])('%d is %s', (value, text) => {
  expect(decimalText(value)).toBe(text);
});

test("any parameters fit the receipt's format", () => {
  const { engine, sampling: samplingSchema } = ReceiptSchema.properties;
  const [isEngine, isSampling] = [Compile(engine), Compile(samplingSchema)];
  const unit = fc.double({ min: 0, max: 1, noNaN: true });
  const parameters = fc.record({
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    topP: unit,
    topK: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    minP: unit,
    logitBias: fc.constant([]),
    seed: fc.double({ min: -(2 ** 63), max: 2 ** 63, noNaN: true }).map(Math.trunc),
    frequencyPenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    presencePenalty: fc.double({ min: -2, max: 2, noNaN: true }),
  });
  fc.assert(
    fc.property(parameters, fc.string({ maxLength: 200 }), (drawn, name) => {
      const said = computedBy({ engine: name, weightsSha256: null, templateSha256: null }, { usedTemplate: true, sampling: drawn });
      expect(isSampling.Check(said.sampling)).toBe(true);
      expect(isEngine.Check(said.engine)).toBe(true);
      expect(receiptVersionProblem({ v: 2, ...said })).toBeNull();
    }),
    { seed: 41 },
  );
});

test('an engine name is cleaned for the receipt', () => {
  expect(engineName('  "llama"\n<b>  ')).toBe('llama b');
  expect(engineName('\u{1F600}')).toBe('unknown');
});
