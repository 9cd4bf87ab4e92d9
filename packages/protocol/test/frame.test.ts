import { describe, expect, test } from 'vitest';
import { toHex } from '../src/bytes.js';
import type { JobId } from '../src/ids.js';
import { decodeFrame, encodeFrame, encodeFrameParts, FRAME_HEADER_BYTES, FrameError, frameAad } from '../src/wire/frame.js';
import { MAX_FRAME_PAYLOAD_BYTES } from '../src/wire/limits.js';
import { SeededRandom } from './seeded-random.js';

const jobId = '01234567-89ab-4cde-8f01-23456789abcd' as JobId;

test('the header has the documented bytes', () => {
  const bytes = encodeFrame({ type: 'response', final: true, seq: 0x01020304, jobId, payload: Uint8Array.of(0xff) });
  expect(toHex(bytes)).toBe('02010000010203040123456789ab4cde8f0123456789abcdff');
  expect(toHex(frameAad(0x01020304, true))).toBe('0102030401');
  expect(toHex(frameAad(0xffffffff, false))).toBe('ffffffff00');
});

test('every frame decodes to the encoded frame, also from the middle of a larger buffer', () => {
  const random = new SeededRandom(4);
  for (let i = 0; i < 200; i++) {
    const hex = toHex(random.bytes(16));
    const frame = {
      type: random.pick(['request', 'response'] as const),
      final: random.below(2) === 1,
      seq: random.below(2 ** 32),
      jobId: `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}` as JobId,
      payload: random.bytes(random.below(300)),
    };
    const encoded = encodeFrame(frame);
    const larger = new Uint8Array(encoded.length + 20);
    larger.set(encoded, 7);
    expect(decodeFrame(larger.subarray(7, 7 + encoded.length))).toEqual(frame);
    const cut = random.below(frame.payload.length + 1);
    expect(encodeFrameParts(frame, frame.payload.subarray(0, cut), frame.payload.subarray(cut))).toEqual(encoded);
  }
});

describe('refused', () => {
  const valid = encodeFrame({ type: 'request', final: false, seq: 0, jobId, payload: new Uint8Array(16) });

  test('frames shorter than the header', () => {
    for (let length = 0; length < FRAME_HEADER_BYTES; length++) expect(() => decodeFrame(valid.subarray(0, length))).toThrow(FrameError);
  });

  test('unknown types', () => {
    for (const type of [0, 3, 0x81, 255]) expect(() => decodeFrame(Uint8Array.from(valid).fill(type, 0, 1))).toThrow(FrameError);
  });

  test('every reserved bit', () => {
    for (let bit = 1; bit < 8; bit++) expect(() => decodeFrame(Uint8Array.from(valid).fill(1 << bit, 1, 2))).toThrow(FrameError);
    for (const offset of [2, 3]) {
      for (let bit = 0; bit < 8; bit++)
        expect(() => decodeFrame(Uint8Array.from(valid).fill(1 << bit, offset, offset + 1))).toThrow(FrameError);
    }
  });

  test('payloads over the cap, both ways; one at the cap passes', () => {
    const atCap = { type: 'request', final: true, seq: 0, jobId, payload: new Uint8Array(MAX_FRAME_PAYLOAD_BYTES) } as const;
    expect(decodeFrame(encodeFrame(atCap)).payload.length).toBe(MAX_FRAME_PAYLOAD_BYTES);
    expect(() => encodeFrame({ ...atCap, payload: new Uint8Array(MAX_FRAME_PAYLOAD_BYTES + 1) })).toThrow(FrameError);
    const over = new Uint8Array(FRAME_HEADER_BYTES + MAX_FRAME_PAYLOAD_BYTES + 1);
    over[0] = 1;
    expect(() => decodeFrame(over)).toThrow(FrameError);
  });
});
