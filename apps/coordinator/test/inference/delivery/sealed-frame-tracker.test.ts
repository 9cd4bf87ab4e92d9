/** Frame boundaries of a sealed answer, wherever its bytes are split. */
import { E2E_RESPONSE_NONCE_BYTES, e2eKeepAlive } from '@inference/protocol';
import { expect, it } from 'vitest';
import { SealedFrameTracker } from '../../../src/inference/delivery/sealed-framing.js';

const frame = (flags: number, length: number): Buffer =>
  Buffer.concat([Buffer.from([flags, 0, length >> 8, length & 0xff]), Buffer.alloc(length, 1)]);
const NONCE = Buffer.alloc(E2E_RESPONSE_NONCE_BYTES, 1);
const CONTENT = Buffer.concat([NONCE, frame(0, 300), e2eKeepAlive(), frame(0, 17)]);
const ANSWER = Buffer.concat([CONTENT, frame(1, 40)]);

it.each([1, 3, 7, 64, ANSWER.length])('counts the bytes before the final frame, in pieces of %i', (size) => {
  const tracker = new SealedFrameTracker();
  let contentBytes = 0;
  for (let at = 0; at < ANSWER.length; at += size) contentBytes += tracker.push(ANSWER.subarray(at, at + size));
  expect(contentBytes).toBe(CONTENT.length);
  expect(tracker.isAtBoundary).toBe(false);
});

it('is at a boundary after the nonce and after each whole frame only', () => {
  const tracker = new SealedFrameTracker();
  const boundaries: number[] = [];
  for (const [at, byte] of CONTENT.entries()) {
    tracker.push(Uint8Array.of(byte));
    if (tracker.isAtBoundary) boundaries.push(at + 1);
  }
  expect(boundaries).toEqual([32, 336, 340, 361]);
});
