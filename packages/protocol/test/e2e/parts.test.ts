import { describe, expect, test } from 'vitest';
import { concatBytes } from '../../src/bytes.js';
import { E2E_PART_HEADER_BYTES, type E2ePart, E2ePartReader, encodeE2eParts, paddedLength, padmeLength } from '../../src/e2e/parts.js';
import { SeededRandom } from '../seeded-random.js';
import { refuses } from './samples.js';

const limits = { head: 100, body: 1_000_000, image: 1000, proof: 100 };

/** Part header with arbitrary values. */
function rawPart(kind: number, length: number, ...bytes: readonly Uint8Array[]): Uint8Array {
  return concatBytes(Uint8Array.of(kind, length >>> 24, length >>> 16, length >>> 8, length), ...bytes);
}

describe('Padmé', () => {
  // From the paper's definition, computed by hand: E = floor(log2 L), S = floor(log2 E) + 1, the low E − S bits become zero.
  test.each([
    [1, 1],
    [2, 2],
    [7, 7],
    [9, 10],
    [100, 104],
    [1000, 1024],
    [1025, 1088],
    [5000, 5120],
    [1_000_000, 1_015_808],
  ])('pads %d bytes to %d', (length, padded) => {
    expect(padmeLength(length)).toBe(padded);
  });

  test('adds at most 12 %, is monotonic, and leaves its own results alone', () => {
    const random = new SeededRandom(50);
    let last = 0;
    for (let length = 1; length < 20_000; length++) {
      const padded = padmeLength(length);
      expect(padded >= length && padded <= 1.12 * length && padded >= last && padmeLength(padded) === padded).toBe(true);
      last = padded;
    }
    for (let round = 0; round < 1000; round++) {
      const length = 20_000 + random.below(2 ** 30);
      expect(padmeLength(length) / length).toBeLessThan(1.07);
    }
  });

  test('stream padding goes to the next multiple of 512', () => {
    expect([1, 511, 512, 513].map((length) => paddedLength(length, 'stream'))).toEqual([512, 512, 512, 1024]);
  });
});

describe('parts', () => {
  test.each(['padme', 'stream'] as const)('read as written with %s padding, in pieces of any size', (padding) => {
    const random = new SeededRandom(51);
    const parts: E2ePart[] = [
      { kind: 'head', bytes: random.bytes(20) },
      { kind: 'body', bytes: random.bytes(0) },
      { kind: 'image', bytes: random.bytes(900) },
      { kind: 'body', bytes: random.bytes(7000) },
      { kind: 'proof', bytes: random.bytes(1) },
    ];
    const plaintext = encodeE2eParts(parts, padding);
    const content = parts.reduce((sum, { bytes }) => sum + E2E_PART_HEADER_BYTES + bytes.length, E2E_PART_HEADER_BYTES);
    expect(plaintext).toHaveLength(paddedLength(content, padding));
    for (const size of [1, 3, 5, 512, plaintext.length]) {
      const reader = new E2ePartReader(limits);
      const read: E2ePart[] = [];
      for (let at = 0; at < plaintext.length; at += size) read.push(...reader.push(plaintext.subarray(at, at + size)));
      expect(read).toEqual(parts);
      expect(reader.isBetweenParts).toBe(true);
    }
  });

  test('of unknown or forbidden kinds and above their limits are refused before their bytes come', () => {
    for (const kind of [5, 6, 128, 255]) refuses('malformed', () => new E2ePartReader(limits).push(rawPart(kind, 0)));
    refuses('malformed', () => new E2ePartReader({ body: 10 }).push(rawPart(3, 0)));
    refuses('too_large', () => new E2ePartReader(limits).push(rawPart(1, 101)));
    refuses('too_large', () => new E2ePartReader(limits).push(rawPart(2, 0xffff_ffff)));
  });

  test('know whether padding came once and last', () => {
    const after = (...parts: readonly Uint8Array[]) => {
      const reader = new E2ePartReader(limits);
      reader.push(concatBytes(...parts));
      return reader.endsWithOnlyPadding;
    };
    const body = rawPart(2, 1, Uint8Array.of(7));
    const padding = rawPart(0, 0);
    expect(after(body, padding)).toBe(true);
    for (const parts of [[], [body], [padding, body], [padding, padding], [body, padding, Uint8Array.of(0)]])
      expect(after(...parts)).toBe(false);
  });

  test('may contain padding of zeros up to 512 bytes and an eighth of the preceding bytes', () => {
    const body = rawPart(2, 8 * 1000 - 5, new Uint8Array(8 * 1000 - 5));
    expect(new E2ePartReader(limits).push(concatBytes(body, rawPart(0, 1512, new Uint8Array(1512))))).toHaveLength(1);
    refuses('malformed', () => new E2ePartReader(limits).push(concatBytes(body, rawPart(0, 1513))));
    refuses('malformed', () => new E2ePartReader(limits).push(rawPart(0, 513)));
    refuses('malformed', () => new E2ePartReader(limits).push(rawPart(0, 2, Uint8Array.of(0, 1))));
  });
});
