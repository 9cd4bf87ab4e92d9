import { describe, expect, test } from 'vitest';
import { concatBytes, toHex } from '../../src/bytes.js';
import { sha256, sha256Hex } from '../../src/crypto/digest.js';
import { nodeE2eCrypto } from '../../src/crypto/e2e-crypto.js';
import { encodeE2eAbort, encodeE2eAnswerHead, parseE2eAnswerHead, parseE2eProof } from '../../src/e2e/answer-json.js';
import { E2eAnswerMeter } from '../../src/e2e/answer-meter.js';
import {
  E2E_CHUNK_BYTES,
  E2E_FRAME_HEADER_BYTES,
  E2E_RESPONSE_NONCE_BYTES,
  E2E_TAG_BYTES,
  MAX_E2E_BODY_BYTES,
} from '../../src/e2e/limits.js';
import type { E2eCandidate } from '../../src/e2e/request.js';
import { E2eRequestParser, MAX_E2E_HEADER_BYTES, parseE2eRequest } from '../../src/e2e/request-parser.js';
import { MAX_REQUEST_BYTES } from '../../src/wire/limits.js';
import { SeededRandom } from '../seeded-random.js';
import { answerHead, body, joined, openAll, openAs, proof, type Recipient, recipientsOf, refuses, sealAnswer, sealTo } from './samples.js';

const random = new SeededRandom(40);

describe('a sealed exchange', () => {
  test.each([1, 3, 8])('with %d candidates: each opens the request, and the client opens the answer of each', (count) => {
    const recipients = recipientsOf(count);
    const sealed = sealTo(recipients);
    const header = parseE2eRequest(sealed.bytes);
    expect(header.contextBytes).toEqual(sealed.contextBytes);
    expect(header.context).toEqual(sealed.context);
    expect(new Set(header.wrappedKeys.map(({ enc }) => toHex(enc))).size).toBe(count);
    for (const [index, candidate] of sealed.candidates.entries()) {
      const opened = openAs(recipients, sealed.bytes, index);
      expect(opened.body).toEqual(body);
      expect(opened.head).toEqual({ client_nonce: 'A'.repeat(43) });
      expect(opened.context).toEqual(sealed.context);
      expect(opened.contextSha256).toBe(sha256Hex(sealed.contextBytes));
      expect(opened.sealedRequestSha256).toBe(sha256Hex(sealed.bytes));
      expect(sealed).toMatchObject({ contextSha256: opened.contextSha256, sealedRequestSha256: opened.sealedRequestSha256 });
      expect(opened.enc).toEqual(candidate.enc);

      const bodies = [random.bytes(10), random.bytes(2000)];
      const answer = sealAnswer(opened.answerSealer(), bodies);
      const opener = candidate.answerOpener();
      const parts = openAll(opener, answer.pieces);
      expect(parts.map(({ kind }) => kind)).toEqual(['head', 'body', 'body', 'proof']);
      expect(parseE2eAnswerHead((parts[0] as { bytes: Uint8Array }).bytes)).toEqual(answerHead);
      expect(joined(parts, 'body')).toEqual(concatBytes(...bodies));
      expect(parseE2eProof(joined(parts, 'proof'))).toEqual(proof);
      expect(opener.sealedSha256).toBe(answer.sealedSha256);
      expect(answer.sealedSha256).toBe(sha256Hex(concatBytes(...answer.pieces.slice(0, -1))));
    }
  });

  test.each([0, 1, E2E_CHUNK_BYTES - 100, E2E_CHUNK_BYTES, E2E_CHUNK_BYTES + 1, 3 * E2E_CHUNK_BYTES, MAX_E2E_BODY_BYTES])(
    'carries a body of %d bytes in full frames',
    (length) => {
      const recipients = recipientsOf(1);
      const text = new Uint8Array(length).fill(0x61);
      const { bytes } = sealTo(recipients, text);
      expect(bytes.length).toBeLessThanOrEqual(MAX_REQUEST_BYTES);
      expect(Buffer.compare(openAs(recipients, bytes, 0).body, text)).toBe(0);
      // Padding adds at most 12 %.
      const frames = Math.ceil(length / E2E_CHUNK_BYTES) + 2;
      expect(bytes.length - MAX_E2E_HEADER_BYTES).toBeLessThan(1.12 * (length + 100) + frames * (E2E_FRAME_HEADER_BYTES + E2E_TAG_BYTES));
    },
  );

  test('has bodies of similar lengths in requests of equal lengths', () => {
    const lengths = new Set(Array.from({ length: 16 }, (_, index) => sealTo(recipientsOf(3), new Uint8Array(10_000 + index)).bytes.length));
    expect(lengths.size).toBe(1);
  });

  test('passes a coordinator that holds no key, in pieces of any size', () => {
    const recipients = recipientsOf(3);
    const sealed = sealTo(recipients, random.bytes(E2E_CHUNK_BYTES + 5));
    for (const size of [1, 7, 1000, 100_000, sealed.bytes.length]) {
      const parser = new E2eRequestParser();
      for (let at = 0; at < sealed.bytes.length; at += size) parser.push(sealed.bytes.subarray(at, at + size));
      expect(parser.end()).toEqual(parseE2eRequest(sealed.bytes));
    }
    const answer = sealAnswer(openAs(recipients, sealed.bytes, 1).answerSealer(), [random.bytes(5000), random.bytes(1)]);
    const bytes = concatBytes(...answer.pieces);
    for (const size of [1, 31, 33, 600, bytes.length]) {
      const meter = new E2eAnswerMeter(nodeE2eCrypto);
      const opener = sealed.candidates[1]?.answerOpener();
      for (let at = 0; at < bytes.length; at += size) {
        meter.push(bytes.subarray(at, at + size));
        opener?.push(bytes.subarray(at, at + size));
      }
      meter.end();
      opener?.end();
      expect([meter.sealedSha256, opener?.sealedSha256]).toEqual([answer.sealedSha256, answer.sealedSha256]);
      expect(meter.plaintextBytes).toBe(512 + 5120 + 512);
      expect(meter).toMatchObject({ isFinal: true, isAtFrameBoundary: true });
    }
  });

  test('of a plain answer with images is padded once and counts its bytes', () => {
    const recipients = recipientsOf(1);
    const sealed = sealTo(recipients, body, { endpoint: '/v1/images/generations', images: 2, stream: false });
    const sealer = openAs(recipients, sealed.bytes, 0).answerSealer();
    const images = [random.bytes(300_000), random.bytes(200_000)] as const;
    const text = random.bytes(100);
    const start = sealer.start();
    const content = sealer.seal(
      [
        encodeE2eAnswerHead({ status: 200, content_type: 'application/json', headers: { 'x-a': 'b' } }),
        { kind: 'image', bytes: images[0] },
        { kind: 'image', bytes: images[1] },
        { kind: 'body', bytes: text },
      ],
      'padme',
    );
    expect(sealer.responseBytes).toBe(500_100);
    expect(content.length).toBeLessThan(1.12 * 500_200);
    sealer.sealedSha256();
    const parts = openAll((sealed.candidates[0] as E2eCandidate).answerOpener(), [start, content, sealer.finish(proof)]);
    expect(parts.map(({ kind }) => kind)).toEqual(['head', 'image', 'image', 'body', 'proof']);
    for (const [index, image] of images.entries()) expect(Buffer.compare(parts[index + 1]?.bytes ?? new Uint8Array(0), image)).toBe(0);
    expect(parts[3]?.bytes).toEqual(text);
  });

  test('is sealed in the order of its parts only', () => {
    const recipients = recipientsOf(1);
    const sealer = openAs(recipients, sealTo(recipients).bytes, 0).answerSealer();
    expect(() => sealer.seal([], 'stream')).toThrow('is new');
    expect(() => sealer.sealedSha256()).toThrow('is new');
    sealer.start();
    expect(() => sealer.start()).toThrow('is open');
    expect(() => sealer.finish(proof)).toThrow('is open');
    expect(() => sealer.seal([{ kind: 'proof', bytes: body }], 'stream')).toThrow(RangeError);
    sealer.sealedSha256();
    expect(() => sealer.seal([], 'stream')).toThrow('is hashed');
    refuses('malformed', () => sealer.finish({ ...proof, response_hash: '' }));
    sealer.finish(proof);
    expect(() => sealer.finish(proof)).toThrow('is finished');
  });

  test('with keep-alives is hashed and opened as without them', () => {
    const recipients = recipientsOf(1);
    const sealed = sealTo(recipients);
    const sealer = openAs(recipients, sealed.bytes, 0).answerSealer();
    const answer = sealAnswer(sealer, [body]);
    const pieces = answer.pieces.flatMap((piece) => [piece, sealer.keepAlive()]).slice(0, -1);
    const opener = (sealed.candidates[0] as E2eCandidate).answerOpener();
    expect(joined(openAll(opener, pieces), 'body')).toEqual(body);
    expect(opener.sealedSha256).toBe(answer.sealedSha256);
    const meter = new E2eAnswerMeter(nodeE2eCrypto);
    for (const piece of pieces) meter.push(piece);
    expect(meter.sealedSha256).toBe(answer.sealedSha256);
  });

  test('that the coordinator aborts gives its word, and never ends well', () => {
    const recipients = recipientsOf(1);
    const sealed = sealTo(recipients);
    const { pieces } = sealAnswer(openAs(recipients, sealed.bytes, 0).answerSealer(), [body]);
    const opener = (sealed.candidates[0] as E2eCandidate).answerOpener();
    for (const piece of pieces.slice(0, -1)) opener.push(piece);
    const abort = { status: 504, code: 'timeout', message: 'The provider stalled.' };
    expect(opener.push(encodeE2eAbort(abort))).toEqual({ parts: [], abort });
    expect(opener.isFinal).toBe(false);
    refuses('aborted', () => opener.end());
    refuses('after_final', () => opener.push(pieces.at(-1) as Uint8Array));
    refuses('malformed', () => encodeE2eAbort({ ...abort, status: 200 }));
  });

  test('has two answers of one candidate under different keys', () => {
    const recipients = recipientsOf(1);
    const opened = openAs(recipients, sealTo(recipients).bytes, 0);
    const [a, b] = [sealAnswer(opened.answerSealer(), [body]), sealAnswer(opened.answerSealer(), [body])];
    expect(a.pieces[0]).toHaveLength(E2E_RESPONSE_NONCE_BYTES);
    for (const [index, piece] of a.pieces.entries()) expect(piece).not.toEqual(b.pieces[index]);
  });
});

describe('commitments', () => {
  test('are equal on both sides, and differ by candidate, kind, index and hash', () => {
    const recipients = recipientsOf(2);
    const sealed = sealTo(recipients);
    const hash = sha256(body);
    const ofBoth = [0, 1].map((index) => {
      const { commitments } = openAs(recipients, sealed.bytes, index);
      const own = sealed.candidates[index]?.commitments;
      const values = [commitments.request(hash), commitments.response(hash), commitments.image(0, hash), commitments.image(1, hash)];
      expect([own?.request(hash), own?.response(hash), own?.image(0, hash), own?.image(1, hash)]).toEqual(values);
      return [...values, commitments.request(sha256(hash))];
    });
    expect(new Set(ofBoth.flat()).size).toBe(10);
    for (const value of ofBoth.flat()) expect(value).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('refused when sealing', () => {
  const [recipient] = recipientsOf(1) as [Recipient];

  test('no recipient, nine recipients, one provider twice', () => {
    refuses('bad_context', () => sealTo([]));
    refuses('bad_context', () => sealTo(recipientsOf(9)));
    refuses('bad_context', () => sealTo([recipient, recipient]));
  });

  test('a key that its id does not name, of another length, or of small order', () => {
    refuses('bad_key', () => sealTo([{ ...recipient, key_id: '00'.repeat(8) as typeof recipient.key_id }]));
    refuses('bad_key', () => sealTo([{ ...recipient, x25519: recipient.x25519.subarray(1) }]));
    const zero = new Uint8Array(32);
    refuses('bad_key', () => sealTo([{ ...recipient, x25519: zero, key_id: sha256Hex(zero).slice(0, 16) as typeof recipient.key_id }]));
  });

  test('a body over the cap and contradictory terms', () => {
    refuses('too_large', () => sealTo([recipient], new Uint8Array(MAX_E2E_BODY_BYTES + 1)));
    refuses('too_large', () => sealTo([recipient], new Uint8Array(MAX_E2E_BODY_BYTES + 2), { input_images: 1, input_image_bytes: 1 }));
    refuses('bad_context', () => sealTo([recipient], body, { input_images: 1 }));
    refuses('bad_context', () => sealTo([recipient], body, { input_images: 21, input_image_bytes: 1 }));
    refuses('bad_context', () => sealTo([recipient], body, { input_images: 1, input_image_bytes: body.length + 1 }));
    refuses('bad_context', () => sealTo([recipient], body, { endpoint: '/v1/embeddings', input_images: 1, input_image_bytes: 1 }));
    refuses('bad_context', () => sealTo([recipient], body, { expires_at: 1 }));
    refuses('bad_context', () => sealTo([recipient], body, { images: 1 }));
    refuses('bad_context', () => sealTo([recipient], body, { image_size: '64x48' }));
    for (const image_size of ['auto', '64', '0x64', '64x99999']) {
      refuses('bad_context', () => sealTo([recipient], body, { endpoint: '/v1/images/generations', images: 1, image_size }));
    }
    refuses('bad_context', () => sealTo([recipient], body, { endpoint: '/v1/images/generations' }));
    refuses('bad_context', () => sealTo([recipient], body, { model: '' }));
  });
});
