/** Schemas as grammars: every generated text matches the schema, and unenforceable keywords are rejected by path. */
import Schema from 'typebox/schema';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../test/support/seeded-random.js';
import { type Grammar, GrammarBuilder } from '../src/grammar/grammar.js';
import { GrammarMatcher } from '../src/grammar/grammar-matcher.js';
import { JsonGrammar } from '../src/grammar/json-grammar.js';
import { LanguageFactory } from '../src/language/regular-language.js';
import { SchemaCompiler, toSchemaError } from '../src/schema/schema-compiler.js';
import { isValidDocument, schemaValidator } from '../src/validation/validator.js';
import { ambiguousSchema } from './ambiguous-schema.js';

function compile(schema: unknown, isStrict = true): Grammar | null {
  const builder = new GrammarBuilder();
  try {
    const compiler = new SchemaCompiler(new JsonGrammar(builder, new LanguageFactory()), schema, isStrict);
    return builder.grammar(compiler.value([schema as Record<string, unknown>]));
  } catch (error) {
    throw toSchemaError(error);
  }
}

/** Random text of the grammar, completed by the shortest completion. */
function write(grammar: Grammar, machine: GrammarMatcher, random: () => number, length: number): string {
  let state = machine.start();
  let text = '';
  while (text.length < length) {
    const allowed = Array.from({ length: 40 }, () => drawn(grammar, random)).find((code) => machine.step(state, code).length > 0);
    if (allowed === undefined) break;
    text += String.fromCodePoint(allowed);
    state = machine.step(state, allowed);
  }
  return text + machine.rest(state);
}

/** A character of a random class, so rare classes occur. */
function drawn({ classes }: Grammar, random: () => number): number {
  const ranges = classes[Math.floor(random() * classes.length)] as readonly number[];
  const at = 2 * Math.floor(random() * (ranges.length / 2));
  const [from, to] = [ranges[at] as number, ranges[at + 1] as number];
  return from + Math.floor(random() * Math.min(100, to - from + 1));
}

const person = {
  type: 'object',
  properties: { name: { type: 'string', minLength: 1, maxLength: 5 }, age: { type: 'integer', minimum: -3, maximum: 120 } },
  required: ['age'],
  additionalProperties: false,
};
const tagged = (kind: string, value: object) => ({ type: 'object', properties: { kind: { const: kind }, value }, required: ['kind'] });

const SCHEMAS: readonly [string, Record<string, unknown>][] = [
  ['members', person],
  ['anything', {}],
  ['any object', { type: 'object' }],
  ['an anchored pattern', { type: 'string', pattern: '^[A-Z]{2}-\\d{3,4}$' }],
  ['a pattern found anywhere', { type: 'string', pattern: 'ab+c|^x', minLength: 4, maxLength: 20 }],
  ['look-ahead', { type: 'string', pattern: '^(?!ab)(?=.*z)[a-z]+$', maxLength: 12 }],
  ['control characters', { type: 'string', pattern: '^[\\u0001-\\u001f"\\\\]{3}$' }],
  ['letters of all languages', { type: 'string', pattern: '^\\p{Lu}\\S{1,3}$' }],
  ['a long string', { type: 'string', minLength: 3, maxLength: 300 }],
  ['a string without end', { type: 'string', minLength: 70 }],
  ['a range of numbers', { type: 'number', exclusiveMinimum: 0.5, maximum: 12.25 }],
  ['a range around zero', { type: 'number', minimum: -12.5, exclusiveMaximum: 3 }],
  ['a range below zero', { type: 'number', exclusiveMaximum: -100 }],
  ['a range of integers', { type: 'integer', minimum: 5, exclusiveMaximum: 7 }],
  ['positive integers', { type: 'integer', exclusiveMinimum: 0 }],
  ['multiples', { type: 'integer', multipleOf: 7, minimum: 10, maximum: 1000 }],
  ['multiples of a fraction', { type: 'number', multipleOf: 0.25 }],
  ['types', { type: ['string', 'null', 'boolean'], maxLength: 2 }],
  ['values', { enum: ['x', 'xy', 1, null, true, { a: [1, 2] }, '\u0001"\\é'] }],
  ['values of a type', { type: 'integer', enum: ['a', 1, 2, 2.5, 7], minimum: 2 }],
  ['one of several objects', { oneOf: [tagged('a', { type: 'string', maxLength: 3 }), tagged('b', { type: 'integer' })] }],
  [
    'one of several objects that members tell apart',
    {
      oneOf: [
        { type: 'object', properties: { kind: { enum: ['a', 'b'] }, x: { type: 'integer' } }, required: ['kind'] },
        { type: 'object', properties: { kind: { const: 'c' }, on: { const: true } } },
        { $ref: '#/$defs/d' },
      ],
      $defs: { d: { type: 'object', properties: { kind: { const: 'd' }, on: { const: false } }, required: ['kind', 'on'] } },
    },
  ],
  ['one of several types', { oneOf: [{ type: 'string', maxLength: 4 }, { type: 'integer' }, { type: 'null' }] }],
  [
    'one of two ranges',
    {
      oneOf: [
        { type: 'integer', maximum: 3 },
        { type: 'integer', minimum: 4 },
      ],
    },
  ],
  [
    'all of several',
    { allOf: [{ $ref: '#/$defs/p' }, { properties: { ok: { type: 'boolean' } }, required: ['ok'] }], $defs: { p: tagged('a', {}) } },
  ],
  ['not some values', { type: 'string', not: { enum: ['a', 'b', ''] }, maxLength: 2 }],
  ['not a number', { type: 'integer', minimum: 1, maximum: 9, not: { const: 5 } }],
  ['not some types', { not: { type: ['object', 'array', 'string'] } }],
  ['not a number among several types', { type: ['integer', 'string', 'boolean'], not: { type: 'number' }, maxLength: 2 }],
  ['not a boolean', { type: ['boolean', 'null'], not: { const: true } }],
  [
    'not a described reference',
    { type: 'string', not: { $ref: '#/$defs/a', description: 'A.' }, maxLength: 1, $defs: { a: { const: 'a' } } },
  ],
  [
    'not all of several',
    { type: 'string', maxLength: 3, not: { allOf: [{ type: 'string' }, { pattern: '^a' }, { title: 'A', minLength: 2 }] } },
  ],
  [
    'not one of several references',
    {
      enum: ['a', 'b', 'c', 1, 2, true, false],
      not: { anyOf: [{ $ref: '#/$defs/text' }, { const: 1 }, { $ref: '#/$defs/no' }] },
      $defs: { text: { type: 'string', enum: ['a', 2] }, no: { type: 'boolean', const: false } },
    },
  ],
  ['items', { type: 'array', items: { type: 'array', items: { type: 'boolean' }, minItems: 1, maxItems: 2 }, minItems: 2, maxItems: 5 }],
  ['a tuple', { type: 'array', prefixItems: [{ type: 'null' }, { type: 'integer' }], items: false, minItems: 2 }],
  ['different items', { type: 'array', items: { enum: ['a', 'b', 'c', 'd'] }, uniqueItems: true, minItems: 2, maxItems: 3 }],
  ['a map', { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'integer' }, minProperties: 1 }],
  ['a map with named keys', { type: 'object', additionalProperties: { type: 'boolean' }, propertyNames: { pattern: '^[a-z]{1,3}$' } }],
  [
    'a number of members',
    { properties: { a: { type: 'null' }, b: { type: 'null' }, c: { type: 'null' } }, minProperties: 2, maxProperties: 2 },
  ],
  [
    'a tree',
    { type: 'object', properties: { kids: { type: 'array', items: { $ref: '#' } } }, required: ['kids'], additionalProperties: false },
  ],
  ['a list of links', { type: 'object', properties: { next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } }, required: ['next'] }],
  ['an optional member that nothing fits', { type: 'object', properties: { a: false, b: { type: 'null' } }, required: ['b'] }],
  ...['date', 'time', 'date-time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid', 'uri'].map(
    (format): [string, Record<string, unknown>] => [`the format ${format}`, { type: 'string', format }],
  ),
];

describe('every text of the grammar of', () => {
  test.each(SCHEMAS)('%s matches the schema', (_what, schema) => {
    const grammar = compile(schema);
    if (grammar === null) throw new Error('nothing fits');
    const machine = new GrammarMatcher(grammar);
    const random = seededRandom(1);
    const texts = new Set<string>();
    for (let round = 0; round < 40; round++) {
      const text = write(grammar, machine, random, Math.floor(random() * 100));
      texts.add(text);
      expect(Schema.Check(schema, JSON.parse(text)), text).toBe(true);
    }
    expect(texts.size).toBeGreaterThan(1);
    expect(machine.mayExceedPositions(machine.start(), 10_000)).toBe(false);
  });
});

describe('positions of a text in a grammar', () => {
  /** Number of positions after each character. */
  function placesOf(machine: GrammarMatcher, text: string): number[] {
    let state = machine.start();
    return Array.from(text, (character) => {
      state = machine.step(state, character.codePointAt(0) as number);
      return state.length;
    });
  }

  test('are few for many values, each of which can be written, and no other', () => {
    const values = [...Array.from({ length: 3000 }, (_, i) => `value ${i}`), ...Array.from({ length: 300 }, (_, i) => i), '', null, [1]];
    const machine = new GrammarMatcher(compile({ enum: values }) as Grammar);
    for (const value of values) {
      const text = JSON.stringify(value);
      const places = placesOf(machine, text);
      // Ten digits, the quote, and the end.
      expect(Math.max(...places), text).toBeLessThanOrEqual(12);
      expect(Math.min(...places), text).toBeGreaterThan(0);
    }
    for (const text of ['"value 3000"', '"value 01"', '300', '[1,']) expect(placesOf(machine, text).at(-1), text).toBe(0);
    for (const text of ['"value 3', '2', '[1]']) expect(placesOf(machine, text).at(-1), text).toBeGreaterThan(0);
    expect(machine.mayExceedPositions(machine.start(), 10_000)).toBe(false);
  });

  test.each([0, 300])('are detected as too many where choices multiply, %i characters ahead', (length) => {
    const machine = new GrammarMatcher(compile(ambiguousSchema(length)) as Grammar);
    expect(machine.mayExceedPositions(machine.start(), 10_000)).toBe(true);
    expect(machine.mayExceedPositions(machine.start(), 2)).toBe(false);
  });
});

test('the shortest completion is minimal', () => {
  const machine = new GrammarMatcher(compile({ ...person, required: ['name', 'age'] }) as Grammar);
  let state = machine.start();
  expect(machine.rest(state)).toBe('{"name":"a","age":0}');
  for (const character of '{ "name": "Zoë') state = machine.step(state, character.codePointAt(0) as number);
  expect(machine.rest(state)).toBe('","age":0}');
  expect(machine.restBytes(state)).toBe(10);
});

test('names and values with any characters are spelled as JSON', () => {
  const name = 'a "\\na\\"me"\n\r\t\f\u0001';
  const grammar = compile({ type: 'object', properties: { [name]: { const: name } }, required: [name] }) as Grammar;
  const machine = new GrammarMatcher(grammar);
  expect(JSON.parse(machine.rest(machine.start()))).toEqual({ [name]: name });
});

test.each<[object, unknown]>([
  [{ const: 'k' }, 'k'],
  [{ const: null }, null],
  [{ type: 'object', const: { a: [1] } }, { a: [1] }],
  [{ enum: ['a', 'b'], const: 'b' }, 'b'],
])('the only value of a schema is written: %j', (schema, value) => {
  const machine = new GrammarMatcher(compile(schema) as Grammar);
  expect(JSON.parse(machine.rest(machine.start()))).toEqual(value);
});

describe('values are validated against a schema', () => {
  // A backtracking engine would not finish in time.
  const slow = { type: 'string', pattern: '^(a+)+$' };
  const text = `${'a'.repeat(60)}!`;

  test.each<[string, object, unknown]>([
    ['of a text', slow, text],
    ['of a member called enum', { properties: { enum: slow } }, { enum: text }],
    ['of a member called const', { $defs: { const: slow }, properties: { a: { $ref: '#/$defs/const' } } }, { a: text }],
    ['of names', { patternProperties: { '^(a+)+$': true } }, { [text]: 1 }],
    [
      'in a value that a reference leads to',
      { properties: { a: { $ref: '#/$defs/v/const' } }, $defs: { v: { const: slow } } },
      { a: text },
    ],
    [
      'in a value, by a spelled reference',
      { properties: { a: { $ref: '#/$defs/v/%63onst' } }, $defs: { v: { const: slow } } },
      { a: text },
    ],
    ['in a value with a name', { properties: { a: { $ref: 'v' } }, enum: [{ a: text }, { $id: 'v', ...slow }] }, { a: text }],
  ])('without the patterns %s', (_where, schema, value) => {
    expect(isValidDocument(schema, value)).toBe(true);
    expect(schemaValidator(schema, schema)(value)).toBe(true);
  });

  test.each<[string, string, string]>([
    ['called not', '{"properties":{"not":{"pattern":"^a$"}},"required":["not"],"additionalProperties":false}', '{"not":"a"}'],
    ['called oneOf', '{"properties":{"oneOf":{"pattern":"^a$"}},"required":["oneOf"],"additionalProperties":false}', '{"oneOf":"a"}'],
    [
      'called __proto__',
      '{"properties":{"__proto__":{"type":"string"}},"required":["__proto__"],"additionalProperties":false}',
      '{"__proto__":"a"}',
    ],
    ['whose name has a pattern', '{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}', '{"x1":"a"}'],
  ])('with members %s', (_how, schema, value) => {
    expect(isValidDocument(JSON.parse(schema), JSON.parse(value))).toBe(true);
    expect(schemaValidator({}, JSON.parse(schema))(JSON.parse(value))).toBe(true);
  });

  test('unless validation takes too long or recurses forever', () => {
    const twice = (index: number) => ({ anyOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] });
    const $defs = { ...Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`d${index}`, twice(index)])), d60: { const: 1 } };
    expect(isValidDocument({ $defs, anyOf: [{ $ref: '#/$defs/d0' }, { type: 'integer' }] }, 2)).toBeNull();
    expect(() => compile({ $defs, properties: { a: { $ref: '#/$defs/d0' } }, const: { a: 2 } })).toThrow(
      expect.objectContaining({ code: 'unsupported' }),
    );
    expect(isValidDocument({ anyOf: [{ $ref: '#' }, { type: 'integer' }] }, 2)).toBeNull();
  });

  test('with all other keywords', () => {
    const schema = { type: 'object', properties: { enum: { type: 'string', maxLength: 2 } }, required: ['enum'] };
    expect(isValidDocument(schema, { enum: 'ab' })).toBe(true);
    expect(isValidDocument(schema, { enum: 'abc' })).toBe(false);
    expect(isValidDocument({ $defs: { v: { maxLength: 2 } }, $ref: '#/$defs/v' }, 'abc')).toBe(false);
  });
});

const wide = (index: number) => ({
  type: 'object',
  properties: {
    kind: { type: 'string', pattern: `^${index}x` },
    ...Object.fromEntries(values(60).map((name) => [name, { type: 'string' }])),
  },
  required: ['kind'],
});
const values = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `v${index}`);

describe('a schema', () => {
  test.each<[string, unknown, string]>([
    ['different items of any kind', { properties: { a: { type: 'array', uniqueItems: true } } }, 'properties.a.uniqueItems'],
    [
      'branches that may overlap',
      {
        oneOf: [
          { type: 'integer', minimum: 3 },
          { type: 'integer', maximum: 3 },
        ],
      },
      'oneOf',
    ],
    [
      'objects that no member tells apart, because neither has to have it',
      { oneOf: ['a', 'b'].map((kind) => ({ type: 'object', properties: { kind: { const: kind } } })) },
      'oneOf',
    ],
    [
      'objects, or numbers that no member tells apart',
      { oneOf: ['a', 'b'].map((kind) => ({ ...tagged(kind, {}), type: ['object', 'integer'] })) },
      'oneOf',
    ],
    [
      'objects, or numbers by another choice',
      { oneOf: ['a', 'b'].map((kind) => ({ ...tagged(kind, {}), type: undefined, anyOf: [{ type: 'object' }, { type: 'integer' }] })) },
      'oneOf',
    ],
    [
      'objects with a value in common',
      {
        oneOf: [
          ['a', 'b'],
          ['b', 'c'],
        ].map((types) => tagged('', { enum: types })),
      },
      'oneOf',
    ],
    ['many large branches that nothing tells apart at a glance', { oneOf: Array.from({ length: 32 }, (_, index) => wide(index)) }, 'oneOf'],
    ['conditions', { if: {} }, 'if'],
    ['names by pattern', { patternProperties: { '^a': {} } }, 'patternProperties'],
    ['a reference back', { type: 'string', pattern: '(a)\\1' }, 'pattern'],
    ['a pattern with too many states', { type: 'string', pattern: '(a|b)*a(a|b){14}' }, ''],
    ['multiples that doubles cannot hold', { type: 'number', multipleOf: 0.01 }, 'multipleOf'],
    ['thousands of items', { type: 'array', minItems: 100_000 }, 'minItems'],
    ['several members of any name', { type: 'object', minProperties: 3 }, 'minProperties'],
    ['not an object with a member', { not: { required: ['a'] } }, 'not'],
    ['not some object', { not: { const: { a: 1 } } }, 'not'],
    ['not a range of numbers', { type: 'number', not: { type: 'number', minimum: 3 } }, 'not'],
    ['not an integer among numbers', { type: 'number', not: { type: 'integer' } }, 'not'],
    ['not a long text or another type', { not: { minLength: 3 } }, 'not'],
    ['not two patterns', { type: 'string', not: { allOf: [{ type: 'string', pattern: 'a' }, { pattern: 'b' }] } }, 'not'],
    ['not not', { not: { not: { type: 'string' } } }, 'not'],
    ['another address', { $ref: 'https://example.com/schema' }, '$ref'],
    ['great depth', chain(1000), ''],
    ['thousands of values', { enum: values(30_000) }, ''],
    ['thousands of values, again and again', { anyOf: Array.from({ length: 100 }, () => ({ type: 'string' })), enum: values(1000) }, ''],
    ['thousands of values but for others', { enum: values(1000), not: { enum: values(100) } }, ''],
  ])('that uses %s is rejected as unenforceable', (_what, schema, path) => {
    expect(() => compile(schema)).toThrow(expect.objectContaining({ code: 'unsupported', path: path === '' ? [] : path.split('.') }));
  });

  test('with members doubling per level has a grammar of linear size', () => {
    expect(compile(chain(100))?.rules.length).toBeLessThan(1500);
  });

  test('is accepted without unenforceable keywords in non-strict mode', () => {
    for (const schema of [{ type: 'array', uniqueItems: true }, { oneOf: [{ type: 'string' }, { maxLength: 3 }] }, { if: {} }]) {
      expect(compile(schema, false)).not.toBeNull();
    }
  });

  test('with an unenforceable pattern under `not` still allows strings in non-strict mode', () => {
    const schema = { type: 'string', not: { type: 'string', pattern: '(a)\\1' } };
    expect(() => compile(schema)).toThrow(expect.objectContaining({ code: 'unsupported', path: ['not', 'pattern'] }));
    expect(compile(schema, false)).not.toBeNull();
  });

  test('excludes with `not` only values that match all its keywords', () => {
    const writes = (schema: object, text: string): boolean => {
      const machine = new GrammarMatcher(compile(schema) as Grammar);
      let state = machine.start();
      for (const character of text) state = machine.step(state, character.codePointAt(0) as number);
      return state.length > 0;
    };
    const notAll = { type: 'string', not: { allOf: [{ type: 'string' }, { pattern: '^a' }] } };
    expect([writes(notAll, '"b"'), writes(notAll, '"a"')]).toEqual([true, false]);
    const notTyped = { enum: ['a', 1, 2], not: { type: 'integer', enum: ['a', 1] } };
    expect([writes(notTyped, '"a"'), writes(notTyped, '2'), writes(notTyped, '1')]).toEqual([true, true, false]);
    const notBoth = { enum: ['a', 'b'], not: { enum: ['a', 'b'], const: 'b' } };
    expect([writes(notBoth, '"a"'), writes(notBoth, '"b"')]).toEqual([true, false]);
  });

  test('under `not` is read once per reference, also if references double per level or return', () => {
    const twice = (index: number) => ({ anyOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] });
    const $defs = { ...Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`d${index}`, twice(index)])), d60: twice(-1) };
    expect(compile({ type: 'string', not: { $ref: '#/$defs/d0' }, $defs })).not.toBeNull();
  });

  test('under `not` merges many keywords in linear time', () => {
    const keywords = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${index}`, 1]));
    expect(() => compile({ type: 'string', not: { allOf: [{ type: 'string' }, keywords] } })).toThrow('unsupported at not');
  });

  test('with `enum` and `const` for names allows only names in both', () => {
    const named = (name: string) => ({
      type: 'object',
      additionalProperties: { type: 'null' },
      propertyNames: { enum: ['a', 'b'], const: name },
      minProperties: 1,
    });
    expect(compile(named('c'))).toBeNull();
    const grammar = compile(named('a'));
    if (grammar === null) throw new Error('nothing fits');
    const machine = new GrammarMatcher(grammar);
    expect(machine.rest(machine.start())).toMatch(/^\{\s*"a"\s*:\s*null\s*\}$/);
    const opened = [...'{"'].reduce((state, character) => machine.step(state, character.codePointAt(0) as number), machine.start());
    expect(['a', 'b'].map((name) => machine.step(opened, name.codePointAt(0) as number).length > 0)).toEqual([true, false]);
  });

  test.each([false, { allOf: [false] }])('whose names are %j allows no member', (propertyNames) => {
    const open = { type: 'object', additionalProperties: { type: 'null' }, propertyNames };
    expect(compile({ ...open, minProperties: 1 })).toBeNull();
    const grammar = compile(open);
    if (grammar === null) throw new Error('nothing fits');
    const machine = new GrammarMatcher(grammar);
    expect(machine.rest(machine.start())).toMatch(/^\{\s*\}$/);
  });

  test.each<[unknown, string]>([
    [{ type: 'banana' }, 'type'],
    [{ properties: 3 }, 'properties'],
    [{ enum: [] }, 'enum'],
    [{ anyOf: [3] }, 'anyOf.0'],
    [{ $ref: '#/$defs/none', $defs: {} }, '$ref'],
    [{ type: 'string', pattern: '(' }, 'pattern'],
    [{ minItems: -1 }, 'minItems'],
  ])('that is none is invalid: %j', (schema, path) => {
    expect(() => compile(schema)).toThrow(expect.objectContaining({ code: 'invalid_request', path: path.split('.') }));
  });

  test.each<[unknown]>([
    [{ type: 'string', const: 3 }],
    [{ minimum: 3, maximum: 2, type: 'integer' }],
    [{ type: 'object', properties: { a: false }, required: ['a'] }],
    [{ $ref: '#' }],
    [{ type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] }],
    [{ anyOf: [{ $ref: '#' }] }],
  ])('that nothing fits has no grammar: %j', (schema) => {
    if (JSON.stringify(schema) === '{"$ref":"#"}') expect(compile(schema)).not.toBeNull();
    else expect(compile(schema)).toBeNull();
  });
});

/** Chain of definitions, each referring to the next. */
function chain(length: number): unknown {
  const property = (index: number) => ({ $ref: `#/$defs/d${index}` });
  const definition = (index: number) => ({
    type: 'object',
    properties: index < length ? { a: property(index + 1), b: property(index + 1) } : {},
  });
  return { ...property(0), $defs: Object.fromEntries(Array.from({ length: length + 1 }, (_, index) => [`d${index}`, definition(index)])) };
}
