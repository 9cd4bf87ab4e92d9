/** Outputs of a demanded form: which schemas are taken, and that the engine keeps to them whatever the model wants. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Engine } from '../src/engine/engine.js';
import type { GrammarSchema } from '../src/engine/messages.js';
import { narrowSchema } from '../src/work/narrow-schema.js';
import { ask, collect, startDemoEngine } from './demo-model.js';

describe('schemas', () => {
  test.each<[string, unknown]>([
    ['a pattern', { type: 'string', pattern: 'a+' }],
    ['a range', { type: 'integer', minimum: 1 }],
    ['exactly one of several', { oneOf: [{ type: 'string' }] }],
    ['a combination', { allOf: [{ type: 'string' }] }],
    ['different items', { type: 'array', uniqueItems: true }],
    ['a list of thousands', { type: 'array', maxItems: 100_000 }],
    ['nothing at all', { type: 'object', properties: { a: false } }],
    ['recursion', { $ref: '#/$defs/a', $defs: { a: { type: 'array', items: { $ref: '#/$defs/a' } } } }],
    ['another address', { $ref: 'https://example.com/schema' }],
    ['depth', JSON.parse(`${'{"items":'.repeat(50)}{}${'}'.repeat(50)}`)],
    ['explosion', explosion()],
    ['a control character', { const: '\u0001' }],
    ['a control character in a name', { properties: { '\f': {} } }],
  ])('that ask for %s are more than a grammar promises', (_what, schema) => {
    expect(() => narrowSchema(schema)).toThrow('unsupported');
  });

  test.each<[unknown]>([[{ type: 'banana' }], [{ properties: 3 }], [{ enum: [] }], [{ $ref: '#/$defs/none', $defs: {} }], ['x']])(
    'that are none are invalid: %j',
    (schema) => expect(() => narrowSchema(schema)).toThrow('invalid_request'),
  );

  test('keep what they promise', () => {
    expect(narrowSchema({ type: ['string', 'integer'], enum: ['a', null, 2, 2.5] })).toEqual({ enum: ['a', 2] });
    expect(() => narrowSchema({ type: 'string', const: 3 })).toThrow('unsupported');
    expect(narrowSchema({ title: 'x', type: ['string', 'null'], maxLength: 3, format: 'email' })).toEqual({
      oneOf: [{ type: 'string', maxLength: 3 }, { type: 'null' }],
    });
    expect(
      narrowSchema({ required: ['b'], properties: { a: { $ref: '#/definitions/n' } }, definitions: { n: { type: 'null' } } }),
    ).toMatchObject({
      type: 'object',
      properties: { a: { type: 'null' }, b: { oneOf: expect.anything() } },
    });
  });
});

/** Each definition names the next one twice. */
function explosion(): unknown {
  const property = (index: number) => ({ $ref: `#/$defs/d${index}` });
  const definition = (index: number) => ({ type: 'object', properties: { a: property(index + 1), b: property(index + 1) } });
  return { ...property(0), $defs: Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`d${index}`, definition(index)])) };
}

describe('outputs', () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startDemoEngine(4);
  });
  afterAll(() => engine.close());

  const shaped = (schema: GrammarSchema, seed: number) => ({
    ...ask('What is the capital of France?', 400, { temperature: 2, seed }),
    grammar: { before: '', schema, after: '' },
  });

  test('are valid at any temperature', async () => {
    const schema = narrowSchema({
      type: 'object',
      properties: {
        'a "\\na\\"me"\n\r\t': { type: 'string', maxLength: 8 },
        kind: { enum: ['x', 2, null] },
        list: { type: 'array', items: { anyOf: [{ type: 'boolean' }, { type: 'integer' }] }, minItems: 1, maxItems: 3 },
        day: { type: 'string', format: 'date' },
      },
    });
    for (let seed = 1; seed <= 4; seed++) {
      const { text, reason } = await collect(engine.generate(shaped(schema, seed)));
      expect(reason).toBe('stop');
      const value = JSON.parse(text);
      expect(Object.keys(value)).toEqual(['a "\\na\\"me"\n\r\t', 'kind', 'list', 'day']);
      expect([...value['a "\\na\\"me"\n\r\t']].length).toBeLessThanOrEqual(8);
      expect(['x', 2, null]).toContain(value.kind);
      expect(value.list.length).toBeGreaterThan(0);
      expect(value.list.length).toBeLessThanOrEqual(3);
      for (const item of value.list) expect(typeof item === 'boolean' || Number.isInteger(item)).toBe(true);
      expect(value.day).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    }
  });

  test('of a choice end by themselves', async () => {
    const { text, reason } = await collect(engine.generate(shaped(narrowSchema({ enum: ['yes', 'no'] }), 1)));
    expect(reason).toBe('stop');
    expect(['yes', 'no']).toContain(JSON.parse(text));
  });

  test('of an integer have no exponent', async () => {
    const digits = { ...shaped({ type: 'integer' }, 1), prompt: { type: 'text', text: '1e-5 1e-5 1e-5 1e-5 1e-5 1e-5' } } as const;
    for (let seed = 1; seed <= 20; seed++) {
      const { text } = await collect(engine.generate({ ...digits, sampling: { ...digits.sampling, seed } }));
      expect(text).toMatch(/^-?\d+$/);
    }
  });

  test('that cannot be made are refused, and the engine lives on', async () => {
    await expect(collect(engine.generate(shaped({ type: 'object', properties: { a: null } }, 1)))).rejects.toThrow('invalid_request');
    expect((await collect(engine.generate(ask('What is the capital of Peru?')))).text).toContain('Lima');
  });
});
