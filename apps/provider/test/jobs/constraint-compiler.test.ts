/** Constraints with client schemas are compiled beside the agent's event loop: none blocks others, and each has a time limit. */
import { formatFor, type ParsedRequest, type TextFormat } from '@inference/formats';
import { type Grammar, GrammarMatcher } from '@inference/json-schema-grammar';
import { afterAll, describe, expect, test } from 'vitest';
import { ambiguousSchema } from '../../../../packages/json-schema-grammar/test/ambiguous-schema.js';
import { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import type { JobError } from '../../src/jobs/job-error.js';

const constraints = new ConstraintCompiler();
afterAll(() => constraints.close());

const going = new AbortController().signal;

function chat(changes: object): ParsedRequest {
  const body = { model: 'pico', messages: [{ role: 'user', content: 'Hi.' }], ...changes };
  return (formatFor('/v1/chat/completions') as TextFormat).parse(new TextEncoder().encode(JSON.stringify(body)));
}

function structured(schema: object): ParsedRequest {
  return chat({ response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } } });
}

function objectOf(properties: object): object {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

const colour = structured(objectOf({ colour: { enum: ['red', 'blue'] } }));
/** Seconds. */
const slower = structured(
  objectOf(Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`p${i}`, { type: 'string', pattern: `^(a|b|${i})*a(a|b|c){9}$` }]))),
);
/** Thousands of states, which take a good part of a second. */
const slow = structured(objectOf({ text: { type: 'string', pattern: '^(a|b)*a(a|b){11}$' } }));

function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => null,
    (error: unknown) => (error as JobError).failure,
  );
}

/** Whether the grammar lets a text end as is. */
function accepts(grammar: Grammar | undefined, text: string): boolean {
  if (grammar === undefined) throw new Error('there is no grammar');
  const machine = new GrammarMatcher(grammar);
  let state = machine.start();
  for (const character of text) state = machine.step(state, character.codePointAt(0) ?? 0);
  return state.length > 0 && machine.rest(state) === '';
}

describe('constraints', () => {
  test('of schemas enforce the schema and check outputs', async () => {
    const constraint = await constraints.compile(colour, going);
    expect(constraint?.coversWholeOutput).toBe(true);
    expect(constraint?.grammar.rules.length).toBeGreaterThan(0);
    expect(await constraint?.fits({ text: '{"colour":"red"}', calls: [] })).toBe(true);
    expect(await constraint?.fits({ text: '{"colour":"grey"}', calls: [] })).toBe(false);
  });

  test.each<[object, readonly string[], readonly string[]]>([
    [{ guided_choice: ['yes', 'no', 'none'] }, ['yes', 'no', 'none'], ['non', 'y', '"yes"', 'yes ', '']],
    [{ guided_regex: '[A-Z]{2}-\\d+' }, ['AB-1', 'ZZ-4711'], ['A-1', 'AB-', ' AB-1', 'AB-1x']],
    [{ regex: 'a|b"c' }, ['a', 'b"c'], ['b', 'ab"c', 'b\\"c']],
  ])('of texts are the texts themselves (%j)', async (asked, fitting, others) => {
    const constraint = await constraints.compile(chat(asked), going);
    expect(constraint?.coversWholeOutput).toBe(true);
    for (const text of fitting) expect(accepts(constraint?.grammar, text), text).toBe(true);
    for (const text of others) expect(accepts(constraint?.grammar, text), text).toBe(false);
    expect(await constraint?.fits({ text: fitting[0] ?? '', calls: [] })).toBe(true);
  });

  test.each<[object, object]>([
    [{ guided_regex: 'a)|(?:b' }, { code: 'invalid_request', param: 'guided_regex' }],
    [{ guided_regex: '(' }, { code: 'invalid_request', param: 'guided_regex' }],
    [{ guided_regex: 'a{2000}' }, { code: 'unsupported', param: 'guided_regex', limit: 1000 }],
    [{ guided_json: { type: 'array', uniqueItems: true } }, { code: 'unsupported', param: 'guided_json.uniqueItems' }],
    [{ structured_outputs: { json: { type: 'banana' } } }, { code: 'invalid_request', param: 'structured_outputs.json.type' }],
  ])('that are refused name the field that holds them (%j)', async (asked, failure) => {
    expect(await failureOf(constraints.compile(chat(asked), going))).toEqual(failure);
  });

  test('are absent without a constraint', async () => {
    expect(await constraints.compile(chat({}), going)).toBeNull();
  });

  test('are compiled once per cache scope', async () => {
    const [first, again, other, uncached] = [
      await constraints.compile(colour, going, 'one'),
      await constraints.compile(colour, going, 'one'),
      await constraints.compile(colour, going, 'two'),
      await constraints.compile(colour, going),
    ];
    expect(again?.grammar).toBe(first?.grammar);
    for (const each of [other, uncached]) {
      expect(each?.grammar).not.toBe(first?.grammar);
      expect(each?.grammar).toEqual(first?.grammar);
    }
    expect(await again?.fits({ text: '{"colour":"red"}', calls: [] })).toBe(true);
    expect(await again?.fits({ text: '{"colour":"grey"}', calls: [] })).toBe(false);
  });

  test('of optional tool calls need no thread', async () => {
    const closed = new ConstraintCompiler();
    await closed.close();
    const tool = { type: 'function', function: { name: 'paint', parameters: objectOf({ colour: { type: 'string' } }) } };
    const constraint = await closed.compile(chat({ tools: [tool] }), going);
    expect(constraint?.coversWholeOutput).toBe(false);
    expect(await constraint?.fits({ text: '', calls: [{ name: 'paint', arguments: '{}' }] })).toBe(true);
    expect(await constraint?.fits({ text: '', calls: [{ name: 'draw', arguments: '{}' }] })).toBe(false);
  });

  test('of forbidden tool calls permit all text except a call', async () => {
    const tool = { type: 'function', function: { name: 'paint', parameters: objectOf({ colour: { type: 'string' } }) } };
    const constraint = await constraints.compile(chat({ tools: [tool], tool_choice: 'none' }), going);
    expect(constraint?.coversWholeOutput).toBe(false);
    for (const text of ['', 'Red.', '<tool>', '<<tool_call', 'a <b> <tool_call <tool'])
      expect(accepts(constraint?.grammar, text), text).toBe(true);
    for (const text of ['<tool_call>', 'Red. <<tool_call>\n']) expect(accepts(constraint?.grammar, text), text).toBe(false);
    expect(await constraint?.fits({ text: 'Red.', calls: [] })).toBe(true);
  });

  test('that are rejected name the field', async () => {
    const bad = structured(objectOf({ a: { type: 'string', pattern: '(' } }));
    expect(await failureOf(constraints.compile(bad, going))).toMatchObject({
      code: 'invalid_request',
      param: 'response_format.json_schema.schema.properties.a.pattern',
    });
  });

  test('with too many positions per token are rejected', async () => {
    const failure = { code: 'unsupported', param: 'response_format.json_schema.schema' };
    expect(await failureOf(constraints.compile(structured(ambiguousSchema(0)), going))).toEqual(failure);
    const tool = { type: 'function', function: { name: 'paint', parameters: ambiguousSchema(0) } };
    const forced = chat({ tools: [tool], tool_choice: 'required' });
    expect(await failureOf(constraints.compile(forced, going))).toEqual({ code: 'unsupported', param: 'tools' });
    expect(await constraints.compile(chat({ tools: [tool] }), going)).not.toBeNull();
  });

  test.each<[string, object]>([
    [
      'rules that begin with thousands of others',
      { type: 'object', properties: Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`p${i}`, false])) },
    ],
    [
      'references that lead through thousands of others',
      {
        $ref: '#/$defs/d0',
        $defs: Object.fromEntries(Array.from({ length: 9000 }, (_, i) => [`d${i}`, { anyOf: [{ $ref: `#/$defs/d${i + 1}` }] }])),
      },
    ],
  ])('of %s are refused', async (_what, schema) => {
    expect(await failureOf(constraints.compile(structured(schema), going))).toEqual({
      code: 'unsupported',
      param: 'response_format.json_schema.schema',
    });
  });

  test('of a long value take time linear in its length', async () => {
    const value = 'x'.repeat(500_000);
    const constraint = await constraints.compile(structured(objectOf({ value: { const: value } })), going);
    expect(await constraint?.fits({ text: JSON.stringify({ value }), calls: [] })).toBe(true);
  });

  test('that take long block neither the event loop nor the second thread', async () => {
    // Both threads are running.
    await Promise.all([constraints.compile(colour, going), constraints.compile(colour, going)]);
    let turns = 0;
    let isMade = false;
    const made = failureOf(constraints.compile(slower, going)).finally(() => {
      isMade = true;
    });
    const others: string[] = [];
    const other = constraints.compile(colour, going).then(() => others.push(isMade ? 'after' : 'before'));
    while (!isMade) {
      await new Promise(setImmediate);
      turns++;
    }
    expect(await made).toEqual({ code: 'unsupported', param: 'response_format.json_schema.schema' });
    await other;
    // Compilation in this thread would have blocked every turn.
    expect(turns).toBeGreaterThan(10);
    expect(others).toEqual(['before']);
  });

  test('that take too long are aborted, and the next succeeds', async () => {
    const hasty = new ConstraintCompiler({ maxMs: 100 });
    try {
      for (const _ of [1, 2, 3]) {
        expect(await failureOf(hasty.compile(slow, going))).toEqual({ code: 'unsupported', param: 'response_format.json_schema.schema' });
      }
    } finally {
      await hasty.close();
    }
  });

  test('of cancelled requests are aborted at once', async () => {
    const gone = new AbortController();
    const reason = new Error('gone');
    const asked = [slow, slow, slow].map((each) => constraints.compile(each, gone.signal).catch((error: unknown) => error));
    await new Promise((resolve) => setTimeout(resolve, 20));
    gone.abort(reason);
    expect(await Promise.all(asked)).toEqual([reason, reason, reason]);
    expect(await constraints.compile(slow, gone.signal).catch((error: unknown) => error)).toBe(reason);
    expect(await constraints.compile(colour, going)).not.toBeNull();
  });

  test('end when the compiler is closed', async () => {
    const ending = new ConstraintCompiler();
    const asked = ending.compile(slow, going).catch((error: unknown) => error);
    await new Promise(setImmediate);
    await ending.close();
    expect(await asked).toBeInstanceOf(Error);
  });
});
