import { describe, expect, test } from 'vitest';
import { concatBytes, equalBytes, fromBase64, fromBase64Url, fromHex, fromUtf8, toBase64, toBase64Url, toHex, utf8 } from '../src/bytes.js';
import { SeededRandom } from './seeded-random.js';

describe('encodings', () => {
  test('agree with an independent implementation and decode to the same bytes', () => {
    const random = new SeededRandom(2);
    for (let length = 0; length < 200; length++) {
      const bytes = random.bytes(length);
      const buffer = Buffer.from(bytes);
      expect(toHex(bytes)).toBe(buffer.toString('hex'));
      expect(toBase64(bytes)).toBe(buffer.toString('base64'));
      expect(toBase64Url(bytes)).toBe(buffer.toString('base64url'));
      expect(fromHex(toHex(bytes))).toEqual(bytes);
      expect(fromBase64(toBase64(bytes))).toEqual(bytes);
      expect(fromBase64Url(toBase64Url(bytes))).toEqual(bytes);
    }
  });

  test('base64 of long inputs is right', () => {
    const bytes = new SeededRandom(3).bytes(50_000);
    expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString('base64'));
  });

  test('long base64 with a wrong character anywhere is refused', () => {
    const text = toBase64(new SeededRandom(4).bytes(9_000));
    // Node.js decodes U+0141 as A, and U+013D as =.
    for (const wrong of ['-', '_', '=', ' ', '\n', '\0', 'é', '\u0141', '\u013d']) {
      for (const at of [0, 1, 6_000, text.length - 5, text.length - 1]) {
        expect(() => fromBase64(text.slice(0, at) + wrong + text.slice(at + 1)), `${JSON.stringify(wrong)} at ${at}`).toThrow(RangeError);
      }
    }
  });

  test.each(['AB', 'A', 'AA=', 'AAA', '====', 'AA==\n', ' AA==', 'AA==AA==', 'AB==', 'AAB=', 'A-A=', 'A_A=', 'AA=A', 'ÄAAA'])(
    'base64 %j is refused',
    (text) => {
      expect(() => fromBase64(text)).toThrow(RangeError);
    },
  );

  test.each(['AA==', 'A', 'AB', 'AAB', 'A+', 'A/', 'AA ', 'AA\n', 'ÄA'])('base64url %j is refused', (text) => {
    expect(() => fromBase64Url(text)).toThrow(RangeError);
  });

  test.each(['0', 'AB', '0g', '0x00', ' 00', '00\n'])('hexadecimal %j is refused', (text) => {
    expect(() => fromHex(text)).toThrow(RangeError);
  });

  test('no two base64 texts decode to the same byte', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    const accepted = new Map<number, string>();
    for (const a of alphabet) {
      for (const b of alphabet) {
        let bytes: Uint8Array;
        try {
          bytes = fromBase64(`${a}${b}==`);
        } catch {
          continue;
        }
        expect(accepted.has(bytes[0] as number)).toBe(false);
        accepted.set(bytes[0] as number, a + b);
      }
    }
    expect(accepted.size).toBe(256);
  });
});

describe('UTF-8', () => {
  test.each([
    ['overlong', [0xc0, 0x80]],
    ['surrogate', [0xed, 0xa0, 0x80]],
    ['cut off', [0xe2, 0x82]],
    ['beyond U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['stray continuation', [0x80]],
  ])('%s bytes are refused', (_, bytes) => {
    expect(() => fromUtf8(Uint8Array.from(bytes))).toThrow(TypeError);
  });

  test('a byte order mark is kept, so that text and bytes stay one to one', () => {
    expect(fromUtf8(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))).toBe('\ufeffa');
    expect(fromUtf8(utf8('€😀\0'))).toBe('€😀\0');
  });
});

test('concatenation and comparison', () => {
  expect(concatBytes()).toEqual(new Uint8Array(0));
  expect(concatBytes(Uint8Array.of(1), Uint8Array.of(), Uint8Array.of(2, 3))).toEqual(Uint8Array.of(1, 2, 3));
  expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 2))).toBe(true);
  expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 3))).toBe(false);
  expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1))).toBe(false);
  expect(equalBytes(new Uint8Array(0), new Uint8Array(0))).toBe(true);
});
