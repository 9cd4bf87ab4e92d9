import { describe, expect, test } from 'vitest';
import { encapsulate } from '../src/crypto/hpke.js';
import { RequestOpener, sealRequest } from '../src/crypto/job-sealing.js';
import { MAX_RESPONSE_CHUNK_BYTES, type ResponseOpener, type ResponseSealer } from '../src/crypto/response-sealing.js';
import type { SealingErrorCode } from '../src/crypto/sealing-error.js';
import { generateSealingKeyPair } from '../src/crypto/x25519.js';
import type { JobId } from '../src/ids.js';
import type { JobContext } from '../src/job-context.js';
import { decodeFrame, type Frame } from '../src/wire/frame.js';
import { MAX_VISION_REQUEST_BYTES, REQUEST_CHUNK_BYTES } from '../src/wire/limits.js';
import { jobContext } from './samples.js';
import { SeededRandom, withFlippedBit } from './seeded-random.js';

const key = generateSealingKeyPair();
const otherJob = 'ffffffff-89ab-4cde-8f01-23456789abcd' as JobId;
const random = new SeededRandom(10);
/** Four request frames: three full, one short. */
const body = random.bytes(3 * REQUEST_CHUNK_BYTES + 1000);

function refuses(code: SealingErrorCode, act: () => unknown): void {
  expect(act).toThrow(expect.objectContaining({ name: 'SealingError', code }));
}

function seal(bytes: Uint8Array) {
  const sealed = sealRequest(jobContext, encapsulate(key.publicKey), bytes);
  return { ...sealed, frames: [...sealed.frames].map(decodeFrame) };
}

function acceptAll(opener: RequestOpener, frames: readonly Frame[]): Uint8Array | null {
  let result: Uint8Array | null = null;
  for (const frame of frames) {
    expect(result).toBeNull();
    result = opener.accept(frame);
  }
  return result;
}

describe('request', () => {
  test.each([0, 1, 15, 16, 4096, REQUEST_CHUNK_BYTES - 1, REQUEST_CHUNK_BYTES, REQUEST_CHUNK_BYTES + 1, 3 * REQUEST_CHUNK_BYTES])(
    'of %d bytes comes out as it went in',
    (length) => {
      const bytes = body.subarray(0, length);
      const { enc, frames } = seal(bytes);
      expect(frames).toHaveLength(Math.max(1, Math.ceil(length / REQUEST_CHUNK_BYTES)));
      expect(frames.map((frame) => frame.final)).toEqual(frames.map((_, index) => index === frames.length - 1));
      expect(Buffer.compare(acceptAll(new RequestOpener(jobContext, enc, key, length), frames) as Uint8Array, bytes)).toBe(0);
    },
  );

  test('changed in any member of its context does not open', () => {
    const { enc, frames } = seal(body.subarray(0, 100));
    const changes: { [K in keyof Required<JobContext>]: unknown } = {
      v: 2,
      job_id: otherJob,
      provider_id: 'ff112233445566778899aabbccddeeff',
      key_id: 'ff11223344556677',
      endpoint: '/v1/other',
      model: 'pico2',
      stream: false,
      max_tokens: 65,
      overrides: {},
      response_id: 'chatcmpl-2',
      created: jobContext.created + 1,
      request_sha256: '0'.repeat(64),
      client_nonce: 'B'.repeat(43),
      cache_scope: 'b'.repeat(32),
      issued_at: jobContext.issued_at + 1,
      expires_at: jobContext.expires_at + 1,
    };
    for (const [member, value] of Object.entries(changes)) {
      const changed = { ...jobContext, [member]: value } as JobContext;
      // Rewrites the job id, because frames of another job are rejected before decryption.
      const [frame] = frames.map((each) => ({ ...each, jobId: changed.job_id }));
      refuses('open_failed', () => new RequestOpener(changed, enc, key, 100).accept(frame as Frame));
    }
    for (const removed of ['client_nonce', 'overrides', 'created'] as const) {
      const { [removed]: _, ...changed } = jobContext;
      refuses('open_failed', () => new RequestOpener(changed as JobContext, enc, key, 100).accept(frames[0] as Frame));
    }
    const added = { ...jobContext, added: 1 } as JobContext;
    refuses('open_failed', () => new RequestOpener(added, enc, key, 100).accept(frames[0] as Frame));
  });

  test('sealed for another key does not open', () => {
    const { enc, frames } = seal(body.subarray(0, 100));
    refuses('open_failed', () => new RequestOpener(jobContext, enc, generateSealingKeyPair(), 100).accept(frames[0] as Frame));
    refuses('open_failed', () => new RequestOpener(jobContext, withFlippedBit(enc, 0), key, 100).accept(frames[0] as Frame));
    refuses('bad_key', () => new RequestOpener(jobContext, enc.subarray(1), key, 100));
    refuses('bad_key', () => new RequestOpener(jobContext, new Uint8Array(32), key, 100));
  });

  test('with a changed bit anywhere in a frame is refused, and nothing is given out', () => {
    const { enc } = seal(body);
    const sealed = sealRequest(jobContext, encapsulate(key.publicKey), body.subarray(0, 40));
    const encoded = sealed.frames.take() as Uint8Array;
    for (let byte = 0; byte < encoded.length; byte++) {
      for (let bit = 0; bit < 8; bit++) {
        const opener = new RequestOpener(jobContext, sealed.enc, key, 40);
        expect(() => opener.accept(decodeFrame(withFlippedBit(encoded, byte, bit)))).toThrow();
        refuses('incomplete', () => opener.responseSealer());
      }
    }
    expect(enc).toHaveLength(32);
  });

  test('with frames dropped, repeated, reordered or swapped is refused at the first wrong one', () => {
    const { enc, frames } = seal(body);
    const [a, b, c, d] = frames as [Frame, Frame, Frame, Frame];
    const orders: [Frame[], number][] = [
      [[b], 0],
      [[d], 0],
      [[a, a], 1],
      [[a, c], 1],
      [[a, b, b], 2],
      [[a, b, d], 2],
      [[a, b, c, a], 3],
    ];
    for (const [order, wrong] of orders) {
      const opener = new RequestOpener(jobContext, enc, key, body.length);
      for (const [index, frame] of order.entries()) {
        if (index === wrong) refuses('out_of_order', () => opener.accept(frame));
        else expect(opener.accept(frame)).toBeNull();
      }
    }
    // The same attacks, with the sequence number in the header rewritten to the expected one.
    const opener = new RequestOpener(jobContext, enc, key, body.length);
    opener.accept(a);
    refuses('open_failed', () => opener.accept({ ...c, seq: 1 }));
    refuses('open_failed', () => opener.accept({ ...a, seq: 1 }));
    expect(acceptAll(opener, [b, c, d])).not.toBeNull();
  });

  test('cut off, never completes: the final flag cannot be moved', () => {
    const { enc, frames } = seal(body);
    const [a, b] = frames as [Frame, Frame, Frame, Frame];
    const opener = new RequestOpener(jobContext, enc, key, body.length);
    opener.accept(a);
    refuses('size_mismatch', () => opener.accept({ ...b, final: true }));
    refuses('incomplete', () => opener.responseSealer());
    // A matching announced size does not hide the truncation, because the final flag is authenticated.
    const shorter = new RequestOpener(jobContext, enc, key, 2 * REQUEST_CHUNK_BYTES);
    shorter.accept(a);
    refuses('open_failed', () => shorter.accept({ ...b, final: true }));
    const single = seal(body.subarray(0, 100));
    const last = single.frames[0] as Frame;
    refuses('open_failed', () => new RequestOpener(jobContext, single.enc, key, 100).accept({ ...last, final: false }));
  });

  test('goes on after its final frame: refused', () => {
    const { enc, frames } = seal(body.subarray(0, 100));
    const opener = new RequestOpener(jobContext, enc, key, 100);
    opener.accept(frames[0] as Frame);
    refuses('after_final', () => opener.accept(frames[0] as Frame));
    refuses('after_final', () => opener.accept({ ...(frames[0] as Frame), seq: 1 }));
  });

  test('with more or fewer bytes than announced is refused', () => {
    const { enc, frames } = seal(body);
    refuses('too_large', () => new RequestOpener(jobContext, enc, key, 100).accept(frames[0] as Frame));
    refuses('too_large', () => acceptAll(new RequestOpener(jobContext, enc, key, body.length - 1), frames));
    refuses('size_mismatch', () => acceptAll(new RequestOpener(jobContext, enc, key, body.length + 1), frames));
    refuses('too_large', () => new RequestOpener(jobContext, enc, key, MAX_VISION_REQUEST_BYTES + 1));
    refuses('too_large', () => sealRequest(jobContext, encapsulate(key.publicKey), new Uint8Array(MAX_VISION_REQUEST_BYTES + 1)));
  });

  test('takes no frame of another job or direction', () => {
    const { enc, frames } = seal(body.subarray(0, 100));
    const opener = new RequestOpener(jobContext, enc, key, 100);
    refuses('wrong_frame', () => opener.accept({ ...(frames[0] as Frame), jobId: otherJob }));
    refuses('wrong_frame', () => opener.accept({ ...(frames[0] as Frame), type: 'response' }));
    expect(opener.accept(frames[0] as Frame)).not.toBeNull();
  });

  test('without bytes, in endless frames, does not complete', () => {
    const { enc } = seal(body.subarray(0, 100));
    const opener = new RequestOpener(jobContext, enc, key, 100);
    for (const length of [0, 15, 16]) {
      const frame: Frame = { type: 'request', final: false, seq: 0, jobId: jobContext.job_id, payload: new Uint8Array(length) };
      refuses('open_failed', () => opener.accept(frame));
    }
  });

  test('of the largest size works', () => {
    const largest = new Uint8Array(MAX_VISION_REQUEST_BYTES).fill(65);
    const { enc, frames } = seal(largest);
    const opened = acceptAll(new RequestOpener(jobContext, enc, key, largest.length), frames);
    expect(Buffer.compare(opened as Uint8Array, largest)).toBe(0);
  });
});

describe('response', () => {
  function open(): { sealer: ResponseSealer; opener: ResponseOpener } {
    const { enc, frames, responseOpener } = seal(body.subarray(0, 10));
    const request = new RequestOpener(jobContext, enc, key, 10);
    acceptAll(request, frames);
    expect(request.responseSealer()).toBe(request.responseSealer());
    return { sealer: request.responseSealer(), opener: responseOpener };
  }

  test('comes out unchanged, for all divisions into pieces', () => {
    for (let round = 0; round < 30; round++) {
      const { sealer, opener } = open();
      const pieces = Array.from({ length: 1 + random.below(8) }, () => random.bytes(random.below(300)));
      for (const [index, piece] of pieces.entries()) {
        expect(opener.finished).toBe(false);
        expect(opener.open(decodeFrame(sealer.seal(piece, index === pieces.length - 1)))).toEqual(piece);
      }
      expect(opener.finished).toBe(true);
    }
  });

  test('frames in any other order than sealed are refused; in that order they open', () => {
    for (let round = 0; round < 40; round++) {
      const { sealer, opener } = open();
      const frames = Array.from({ length: 5 }, (_, index) => decodeFrame(sealer.seal(random.bytes(20), index === 4)));
      for (const [due, frame] of frames.entries()) {
        const other = random.below(5);
        if (other !== due) {
          refuses('out_of_order', () => opener.open(frames[other] as Frame));
          refuses('open_failed', () => opener.open({ ...(frames[other] as Frame), seq: due }));
        }
        expect(opener.open(frame)).toHaveLength(20);
      }
      refuses('after_final', () => opener.open(frames[4] as Frame));
      refuses('after_final', () => opener.open({ ...(frames[4] as Frame), seq: 5 }));
    }
  });

  test('a changed bit anywhere in a frame is refused', () => {
    const { sealer, opener } = open();
    const encoded = sealer.seal(random.bytes(30), false);
    for (let byte = 0; byte < encoded.length; byte++) {
      for (let bit = 0; bit < 8; bit++) expect(() => opener.open(decodeFrame(withFlippedBit(encoded, byte, bit)))).toThrow();
    }
    expect(opener.open(decodeFrame(encoded))).toHaveLength(30);
    expect(opener.finished).toBe(false);
  });

  test('the final flag can be neither set nor taken away, and frames cannot be cut', () => {
    const { sealer, opener } = open();
    const first = decodeFrame(sealer.seal(random.bytes(30), false));
    refuses('open_failed', () => opener.open({ ...first, final: true }));
    for (let length = 0; length < first.payload.length; length++) {
      refuses('open_failed', () => opener.open({ ...first, payload: first.payload.subarray(0, length) }));
    }
    opener.open(first);
    const last = decodeFrame(sealer.seal(new Uint8Array(0), true));
    refuses('open_failed', () => opener.open({ ...last, final: false }));
    expect(opener.open(last)).toHaveLength(0);
    expect(opener.finished).toBe(true);
  });

  test('of another job or direction is refused', () => {
    const { sealer, opener } = open();
    const other = open();
    const frame = decodeFrame(sealer.seal(random.bytes(30), true));
    refuses('wrong_frame', () => opener.open({ ...frame, jobId: otherJob }));
    refuses('wrong_frame', () => opener.open({ ...frame, type: 'request' }));
    // The same ids, but sealed under the key of another HPKE context.
    refuses('open_failed', () => other.opener.open(frame));
    expect(opener.open(frame)).toHaveLength(30);
  });

  test('bytes that do not fit a frame, or come after the end, are not sealed', () => {
    const { sealer, opener } = open();
    refuses('too_large', () => sealer.seal(new Uint8Array(MAX_RESPONSE_CHUNK_BYTES + 1), false));
    expect(opener.open(decodeFrame(sealer.seal(new Uint8Array(MAX_RESPONSE_CHUNK_BYTES), true)))).toHaveLength(MAX_RESPONSE_CHUNK_BYTES);
    refuses('after_final', () => sealer.seal(new Uint8Array(1), false));
  });

  test('cannot be sealed before the request is complete', () => {
    const { enc, frames } = seal(body);
    const opener = new RequestOpener(jobContext, enc, key, body.length);
    refuses('incomplete', () => opener.responseSealer());
    opener.accept(frames[0] as Frame);
    refuses('incomplete', () => opener.responseSealer());
  });
});
