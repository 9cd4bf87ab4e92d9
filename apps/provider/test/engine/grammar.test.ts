/** Outputs under a grammar from the real engine: every output matches and ends in time. */
import { join } from 'node:path';
import { ANY_CHARACTER, type Grammar, GrammarBuilder, JsonGrammar, LanguageFactory, SchemaCompiler } from '@inference/json-schema-grammar';
import Schema from 'typebox/schema';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ambiguousSchema, unambiguousSchema } from '../../../../packages/json-schema-grammar/test/ambiguous-schema.js';
import { runProgram } from '../../../../test/support/program.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { Engine } from '../../src/engine/engine.js';
import { ask, collect, demoModel } from '../demo-model.js';

function grammarOf(schema: Record<string, unknown>): Grammar {
  const builder = new GrammarBuilder();
  const compiler = new SchemaCompiler(new JsonGrammar(builder, new LanguageFactory()), schema, true);
  const grammar = builder.grammar(compiler.value([schema]));
  if (grammar === null) throw new Error('nothing fits');
  return grammar;
}

const schema = {
  type: 'object',
  properties: {
    'a "\\na\\"me"\n\r\t': { type: 'string', maxLength: 8 },
    kind: { enum: ['x', '<|im_start|>', 2, null] },
    list: { type: 'array', items: { anyOf: [{ type: 'boolean' }, { type: 'integer' }] }, minItems: 1, maxItems: 3 },
    day: { type: 'string', format: 'date' },
    code: { type: 'string', pattern: '^[A-Z]{2}-[0-9]+$', maxLength: 9 },
    more: { anyOf: [{ $ref: '#' }, { type: 'null' }] },
  },
  required: ['a "\\na\\"me"\n\r\t', 'kind', 'list', 'day', 'code', 'more'],
  additionalProperties: false,
};

const directory = temporaryDirectory('grammar');
const randomModel = join(directory, 'random.gguf');
const endlessModel = join(directory, 'endless.gguf');

beforeAll(async () => {
  for (const [path, ...options] of [[randomModel], [endlessModel, '--endless', '--seed', '3']] as const) {
    await runProgram('scripts/make-model.ts', ['--out', path, ...options]);
  }
});

describe.each([
  ['the demo model', demoModel()],
  ['random weights', randomModel],
  ['random weights that never end', endlessModel],
])('%s', (_name, modelPath) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await Engine.start({ settings: { modelPath, slots: 4, contextSize: 1024, gpu: 'none' } });
  });
  afterAll(() => engine.close());

  const shaped = (grammar: Grammar, maxTokens: number, sampling = {}) => ({
    ...ask('What is the capital of France?', maxTokens, { temperature: 2, ...sampling }),
    grammar,
  });

  test('writes complete values of the schema within every sufficient limit', async () => {
    const grammar = grammarOf(schema);
    const limits = [110, 111, 150, 300, 600];
    await Promise.all(
      limits.map(async (limit) => {
        const { text, reason, completionTokens, tokens } = await collect(engine.generate(shaped(grammar, limit)));
        expect(Schema.Check(schema, JSON.parse(text)), text).toBe(true);
        expect(reason).toBe('stop');
        expect(completionTokens).toBeLessThanOrEqual(limit);
        expect(tokens).toBe(completionTokens);
      }),
    );
  });

  test('cuts off without room for the shortest text', async () => {
    const { reason, completionTokens } = await collect(engine.generate(shaped(grammarOf(schema), 10)));
    expect({ reason, completionTokens }).toEqual({ reason: 'length', completionTokens: 10 });
  });

  test('ends free objects in time', async () => {
    const { text, reason } = await collect(engine.generate(shaped(grammarOf({ type: 'object' }), 200, { presencePenalty: -2 })));
    expect(JSON.parse(text)).toBeTypeOf('object');
    expect(reason).toBe('stop');
  });

  test('chooses one of the values and nothing more', async () => {
    const { text, reason, completionTokens } = await collect(engine.generate(shaped(grammarOf({ enum: ['yes', 'no'] }), 50, { seed: 1 })));
    expect(['yes', 'no']).toContain(JSON.parse(text));
    expect(reason).toBe('stop');
    expect(completionTokens).toBeLessThanOrEqual(6);
  });

  test('writes integers without exponent or leading zeros', async () => {
    const grammar = grammarOf({ type: 'integer', minimum: -30, maximum: 4000 });
    const texts = await Promise.all(Array.from({ length: 8 }, async () => (await collect(engine.generate(shaped(grammar, 20)))).text));
    for (const text of texts) expect(text).toMatch(/^(0|-?[1-9]\d*)$/);
    for (const text of texts) expect(Number(text)).toBeLessThanOrEqual(4000);
  });

  test('gives forced tokens log probabilities whose tokens add up to the text', async () => {
    const request = { ...shaped(grammarOf(schema), 120), logprobs: 1 };
    let text = '';
    let tokens = '';
    for await (const batch of engine.generate(request)) {
      for (const piece of batch) {
        text += piece.text;
        tokens += (piece.logprobs ?? []).map(({ token }) => token).join('');
        expect(piece.logprobs).toHaveLength(piece.tokens);
      }
    }
    expect(tokens).toBe(text);
  });
});

test('free text is cut off at the limit, although it may end anywhere', async () => {
  const engine = await Engine.start({ settings: { modelPath: demoModel(), slots: 1, contextSize: 512, gpu: 'none' } });
  try {
    const builder = new GrammarBuilder();
    const text = builder.reserve();
    builder.define(text, [[], [builder.class(ANY_CHARACTER), text]]);
    const grammar = builder.grammar(text);
    const asked = (maxTokens: number) => ({ ...ask('What is the capital of France?', maxTokens), grammar, permitsFreeText: true });
    expect(await collect(engine.generate(asked(3)))).toMatchObject({ reason: 'length', completionTokens: 3 });
    expect((await collect(engine.generate(asked(60)))).reason).toBe('stop');
  } finally {
    await engine.close();
  }
});

test('a grammar with too many positions is rejected, or its text ended early', async () => {
  const engine = await Engine.start({ settings: { modelPath: demoModel(), slots: 2, contextSize: 1024, gpu: 'none' } });
  try {
    await expect(
      collect(engine.generate({ ...ask('Hi'), grammar: grammarOf({ $defs: ambiguousSchema(0).$defs, $ref: '#/$defs/list6' }) })),
    ).rejects.toThrow('invalid_request');
    const { text, reason } = await collect(engine.generate({ ...ask('Hi', 900), grammar: grammarOf(ambiguousSchema(200)) }));
    expect(reason).toBe('stop');
    expect(Schema.Check(unambiguousSchema(200), JSON.parse(text)), text).toBe(true);
  } finally {
    await engine.close();
  }
});

test('an invalid grammar is rejected without ending the engine', async () => {
  const engine = await Engine.start({ settings: { modelPath: demoModel(), slots: 1, contextSize: 512, gpu: 'none' } });
  try {
    const broken = { classes: [[97, 97]], rules: [[[5]]] };
    await expect(collect(engine.generate({ ...ask('Hi'), grammar: broken }))).rejects.toThrow('invalid_request');
    expect((await collect(engine.generate(ask('What is the capital of Peru?')))).text).toContain('Lima');
  } finally {
    await engine.close();
  }
});
