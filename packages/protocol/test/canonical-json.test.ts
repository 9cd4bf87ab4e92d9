import { describe, expect, test } from 'vitest';
import { canonicalJson, canonicalJsonBytes, type JsonValue } from '../src/canonical-json.js';
import { SeededRandom } from './seeded-random.js';

describe('RFC 8785', () => {
  test('section 3.2.2: the sample object', () => {
    const input = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    expect(canonicalJson(JSON.parse(input) as JsonValue)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  test('section 3.2.3: members are sorted by UTF-16 code units', () => {
    const input = String.raw`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
      "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`;
    const values = canonicalJson(JSON.parse(input) as JsonValue).match(/(?<=:")[^"]+/g);
    expect(values).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
  });

  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('appendix B: %s is %s', (bits, text) => {
    expect(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE())).toBe(text);
  });

  test('appendix B: NaN and infinities are refused', () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
      expect(() => canonicalJson([value])).toThrow(TypeError);
  });
});

test('members that are undefined are left out, and everything that is not JSON is refused', () => {
  expect(canonicalJson({ b: undefined, a: 1 })).toBe('{"a":1}');
  for (const value of [undefined, 1n, Symbol('s'), () => 1])
    expect(() => canonicalJson([value] as unknown as JsonValue)).toThrow(TypeError);
});

test('lone surrogates are refused in values and in member names', () => {
  for (const text of ['\ud800', 'a\udc00', '\ud800\ud800', '\udc00\ud800']) {
    expect(() => canonicalJson(text)).toThrow(TypeError);
    expect(() => canonicalJson({ [text]: 1 })).toThrow(TypeError);
  }
  expect(canonicalJson('\ud83d\ude00')).toBe('"\ud83d\ude00"');
});

test('a member named __proto__ is data like any other', () => {
  const text = '{"__proto__":1,"a":2}';
  expect(canonicalJson(JSON.parse(text) as JsonValue)).toBe(text);
});

test('the order in which members were set makes no difference, and the text parses back to the same value', () => {
  const random = new SeededRandom(1);
  const value = (depth: number): JsonValue => {
    switch (random.below(depth > 3 ? 4 : 6)) {
      case 0:
        return random.pick([null, true, false]);
      case 1:
        return (random.below(2 ** 32) - 2 ** 31) / random.pick([1, 3, 1e10, 1e-10]);
      case 2:
        return String.fromCodePoint(
          ...Array.from({ length: random.below(6) }, () => random.pick([0x22, 0x5c, 0, 0x7f, 0x20ac, 0x1f600, 65])),
        );
      case 3:
        return random.below(1000);
      case 4:
        return Array.from({ length: random.below(4) }, () => value(depth + 1));
      default:
        return Object.fromEntries(Array.from({ length: random.below(5) }, () => [`k${random.below(20)}`, value(depth + 1)]));
    }
  };
  const reversed = (item: JsonValue): JsonValue => {
    if (typeof item !== 'object' || item === null) return item;
    if (Array.isArray(item)) return item.map(reversed);
    return Object.fromEntries(
      Object.entries(item)
        .reverse()
        .map(([key, member]) => [key, reversed(member as JsonValue)]),
    );
  };
  for (let i = 0; i < 300; i++) {
    const sample = value(0);
    const text = canonicalJson(sample);
    expect(canonicalJson(reversed(sample))).toBe(text);
    expect(canonicalJson(JSON.parse(text) as JsonValue)).toBe(text);
    expect(new TextDecoder().decode(canonicalJsonBytes(sample))).toBe(text);
  }
});

test('values with sorted and unsorted members get the same text', () => {
  const sorted = { a: [1, { b: null, c: 'é"' }], b: { '': -0, x: 1e21 }, c: true };
  const shuffled = { c: true, b: { x: 1e21, '': -0 }, a: [1, { c: 'é"', b: null }] };
  const text = String.raw`{"a":[1,{"b":null,"c":"é\""}],"b":{"":0,"x":1e+21},"c":true}`;
  expect(canonicalJson(shuffled)).toBe(text);
  expect(canonicalJson(sorted)).toBe(text);
  // JavaScript orders integer-like keys numerically, not by code units.
  expect(canonicalJson({ 9: 1, 10: 2 })).toBe('{"10":2,"9":1}');
});

test('sorted or not, lone surrogates and numbers that JSON lacks are refused, and only they', () => {
  for (const value of [{ a: '\ud800' }, { '\udfff': 1 }, { a: { b: ['\udc00\ud800'] } }, { a: Number.NaN, b: 1 }, { a: [Infinity] }]) {
    expect(() => canonicalJson(value)).toThrow(TypeError);
  }
  expect(canonicalJson({ a: '\\ud800', b: '\ud83d\ude00' })).toBe(String.raw`{"a":"\\ud800","b":"😀"}`);
});

test('nothing may say itself how it is written', () => {
  const said = { toJSON: () => 'another' };
  expect(() => canonicalJson(said as unknown as JsonValue)).toThrow(TypeError);
  const dated = new Date(0) as unknown as JsonValue;
  expect(canonicalJson({ a: dated })).toBe('{"a":{}}');
});
