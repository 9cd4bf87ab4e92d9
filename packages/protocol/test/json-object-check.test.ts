/** `BodyCheck` agrees with `JSON.parse`, however the bytes are divided. */
import { describe, expect, it } from 'vitest';
import { utf8 } from '../src/bytes.js';
import { BodyCheck, type RequiredMember } from '../src/json-object-check.js';

const FRAGMENTS = [
  ...['{', '}', '[', ']', ',', ':', ' ', '\n', '"', '"a"', '"b":', '"\\u00e9"', '"\\', '\\', 'é', '\u2028', '\u0000'],
  ...['0', '1', '-', '.', 'e', 'E+', '12', 'true', 'false', 'null', 'nul', '{"a":', '[1,', '{}', '[]'],
];

/** Whether the check accepts the text, in one piece and in single bytes. */
function accepts(text: string, required: RequiredMember | null = null): boolean {
  const bytes = utf8(text);
  const [whole, cut] = [new BodyCheck(required), new BodyCheck(required)];
  const isAccepted = whole.accepts(bytes) && whole.isComplete;
  expect(bytes.every((byte) => cut.accepts(Uint8Array.of(byte))) && cut.isComplete, text).toBe(isAccepted);
  return isAccepted;
}

function isAnswer(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    if ('error' in value && value.error !== null) return false;
    const hasEscapedName = !Object.keys(value).every((name) => /^[\x20-\x7e]*$/.test(name) && text.includes(`"${name}"`));
    return !hasEscapedName;
  } catch {
    return false;
  }
}

/** Numbers below `limit`, the same in each run (mulberry32). */
function numbersBelow(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

describe('a body', () => {
  it.each([
    ...['{}', '{"a":[1,-0.5e+3," \u2028",true,null],"error":null}', '{"a":{"error":"of a tool"}}', '{"a":"\\ud83d\\ude00"}'],
    ...[
      '{"a": 1}',
      '{} ',
      '\n{}',
      '{ "a" : [ 1 , -2.5 , "b c" , [ ] , { } ] }\r\n',
      '{"a": - 1}',
      '{"a": 1 2}',
      '{"a":tr ue}',
      '{\u00a0}',
      '',
      '[]',
      'null',
      'Please visit example.org',
      '{',
      '{}x',
      '{}{}',
      '{"a"}',
      '{"a":01}',
      '{"a":1,}',
      '{"a":"\t"}',
      "{'a':1}",
    ],
    ...['{"error":{"message":"free text"}}', '{"error":""}', '{"error":false}'],
  ])('is judged as JSON.parse does: %j', (text) => {
    expect(accepts(text)).toBe(isAnswer(text));
  });

  it('is judged as JSON.parse does after any change of a valid one', () => {
    const random = numbersBelow(1);
    const valid = '{"id":"a\\n\\u00e9é","n":[-1.5e3,0,10,{"error":{"b":null}},[]],"o":{"a":true,"b":false},"error":null}';
    let accepted = 0;
    for (let round = 0; round < 20_000; round++) {
      const at = random(valid.length + 1);
      const fragment = FRAGMENTS[random(FRAGMENTS.length)] as string;
      const text = valid.slice(0, at) + fragment + valid.slice(at + random(4));
      const isValid = isAnswer(text);
      expect(accepts(text), text).toBe(isValid);
      if (isValid) accepted++;
    }
    expect(accepted).toBeGreaterThan(1000);
  });

  it('may be nested far deeper than a model writes, but not without a limit', () => {
    for (const depth of [127, 128, 190, 100_000]) {
      expect(accepts(`{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`)).toBe(true);
      expect(accepts(`{"a":${'['.repeat(depth)}${']'.repeat(depth - 1)}}}`)).toBe(false);
    }
    expect(new BodyCheck(null).accepts(utf8(`{"a":${'['.repeat(2 ** 20)}`))).toBe(false);
  });

  it('is refused for an error with an escaped name, or beside another', () => {
    expect(accepts('{"\\u0065rror":{"message":"free text"}}')).toBe(false);
    expect(accepts('{"error":{"message":"free text"},"error":null}')).toBe(false);
    expect(accepts('{"response":{"error":{"message":"free text"}}}')).toBe(false);
    expect(accepts('{"ERROR":{"message":"free text"}}')).toBe(false);
    expect(accepts('{"Response":{"error":{"message":"free text"}}}')).toBe(false);
    const invalid = new BodyCheck(null);
    expect(invalid.accepts(Uint8Array.from('{"\xfferror":1}', (character) => character.charCodeAt(0)))).toBe(false);
  });

  it('is of its own format', () => {
    const required = { name: 'object', value: 'chat.completion' };
    expect(accepts('{"id":"1","object":"chat.completion"}', required)).toBe(true);
    for (const text of ['{}', '{"object":"list"}', '{"object":1}', '{"a":{"object":"chat.completion"}}']) {
      expect(accepts(text, required), text).toBe(false);
    }
    expect(accepts('{"object":"chat.completion","object":"chat.completion"}', required)).toBe(false);
  });
});
