/** Every change to a sealed request or answer is rejected with a stable error code. */

import { describe, expect, test } from 'vitest';
import { concatBytes, equalBytes, fromHex, toHex, utf8 } from '../../src/bytes.js';
import { canonicalJsonBytes, type JsonValue } from '../../src/canonical-json.js';
import { sha256 } from '../../src/crypto/digest.js';
import { nodeE2eCrypto } from '../../src/crypto/e2e-crypto.js';
import { e2eKeepAlive, encodeE2eAbort, parseE2eAnswerHead, parseE2eProof } from '../../src/e2e/answer-json.js';
import { E2eAnswerMeter } from '../../src/e2e/answer-meter.js';
import type { E2eContext } from '../../src/e2e/context.js';
import { E2E_ERROR_CODES, E2E_REFUSALS, E2eError, type E2eErrorCode } from '../../src/e2e/error.js';
import { E2eFrameSealer, encodeE2eFrame } from '../../src/e2e/frames.js';
import { hkdfExpandBlock, hkdfExtract, sealOnly, setupBaseSender } from '../../src/e2e/hpke.js';
import { E2E_CHUNK_BYTES, E2E_FRAME_HEADER_BYTES, MAX_E2E_FRAME_BYTES } from '../../src/e2e/limits.js';
import { encodeE2eParts } from '../../src/e2e/parts.js';
import { type E2eCandidate, openE2eRequest, type SealedE2eRequest } from '../../src/e2e/request.js';
import { E2eRequestParser, parseE2eRequest, parseE2eRequestHeader } from '../../src/e2e/request-parser.js';
import { SeededRandom, withFlippedBit } from '../seeded-random.js';
import { body, openAll, openAs, proof, type Recipient, recipientsOf, refuses, sealAnswer, sealTo } from './samples.js';

const random = new SeededRandom(41);
const recipients = recipientsOf(3);
const sealed = sealTo(recipients);
const header = parseE2eRequest(sealed.bytes);
const candidate = (index: number, of: SealedE2eRequest = sealed): E2eCandidate => of.candidates[index] as E2eCandidate;

/** Error code, or null. */
function codeOf(act: () => unknown): E2eErrorCode | null {
  try {
    act();
    return null;
  } catch (error) {
    if (error instanceof E2eError) return error.code;
    throw error;
  }
}

/** The request with changed context bytes. */
function withContext(context: JsonValue): Uint8Array {
  const bytes = canonicalJsonBytes(context);
  return concatBytes(
    sealed.bytes.subarray(0, 5),
    Uint8Array.of(bytes.length >>> 8, bytes.length),
    bytes,
    sealed.bytes.subarray(7 + sealed.contextBytes.length),
  );
}

/** Splits sealed bytes into frames, including headers. */
function framesOf(bytes: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += (frames.at(-1) as Uint8Array).length) {
    const length = ((bytes[at + 1] as number) << 16) | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number);
    frames.push(bytes.subarray(at, at + E2E_FRAME_HEADER_BYTES + length));
  }
  return frames;
}

describe('a sealed request', () => {
  test('is refused with any bit changed', () => {
    for (let byte = 0; byte < sealed.bytes.length; byte++) {
      const altered = withFlippedBit(sealed.bytes, byte, random.below(8));
      // This candidate does not read another candidate's wrapped key, but does read commitment and frames.
      const others = header.headerBytes - 32 - 2 * 88;
      const index = byte >= others && byte < others + 88 ? 1 : byte >= others + 88 && byte < others + 176 ? 2 : 0;
      expect(
        codeOf(() => openAs(recipients, altered, index)),
        `byte ${byte}`,
      ).not.toBeNull();
    }
  });

  test('is refused cut off at each byte, also by the coordinator', () => {
    for (let length = 0; length < sealed.bytes.length; length++) {
      const cut = sealed.bytes.subarray(0, length);
      refuses('truncated', () => parseE2eRequest(cut));
      refuses('truncated', () => openAs(recipients, cut, 0));
    }
    for (const more of [Uint8Array.of(0), e2eKeepAlive(), sealed.bytes]) {
      refuses('after_final', () => parseE2eRequest(concatBytes(sealed.bytes, more)));
    }
  });

  test('with an altered context opens for nobody', () => {
    const changes: { readonly [K in keyof E2eContext]?: E2eContext[K] } = {
      endpoint: '/v1/completions',
      model: 'pico2',
      stream: false,
      max_tokens: 65,
      nonce: 'B'.repeat(43),
      issued_at: sealed.context.issued_at + 1,
      expires_at: sealed.context.expires_at + 1,
      log: { size: 8, root: 'ab'.repeat(32) },
    };
    for (const [member, value] of Object.entries(changes)) {
      const altered = withContext({ ...sealed.context, [member]: value });
      expect(parseE2eRequest(altered).context).toMatchObject({ [member]: value });
      for (const index of [0, 1, 2]) refuses('open_failed', () => openAs(recipients, altered, index));
    }
    const { log: _, ...without } = sealed.context;
    refuses('open_failed', () => openAs(recipients, withContext(without), 0));
    refuses('open_failed', () => openAs(recipients, withContext({ ...sealed.context, body_bytes: sealed.context.body_bytes + 1 }), 0));
  });

  test('with a context that the profile does not allow is refused by the coordinator', () => {
    const context = sealed.context as unknown as { readonly [key: string]: JsonValue };
    const refused = (code: E2eErrorCode, changes: JsonValue) =>
      refuses(code, () => parseE2eRequest(withContext({ ...context, ...(changes as object) })));
    refused('bad_context', { v: 2 });
    refused('bad_context', { added: true });
    refused('bad_context', { max_tokens: 0 });
    refused('bad_context', { endpoint: '/v1/models' });
    refused('bad_context', { nonce: 'short' });
    refused('bad_context', { expires_at: 0 });
    refused('bad_context', { recipients: [] });
    refused('malformed', { recipients: [...sealed.context.recipients].reverse() });
    refused('malformed', { recipients: sealed.context.recipients.slice(1) });
    refused('size_mismatch', { body_bytes: 7_000_000 });
    const memberOf = (changes: object): unknown => {
      try {
        parseE2eRequest(withContext({ ...context, ...changes }));
        return undefined;
      } catch (error) {
        return (error as E2eError).member;
      }
    };
    expect(memberOf({ max_tokens: 0 })).toBe('max_tokens');
    expect(memberOf({ expires_at: 0 })).toBe('expires_at');
    expect(memberOf({ images: 1 })).toBe('images');
    expect(memberOf({ image_size: '64x48' })).toBe('image_size');
    expect(memberOf({ recipients: [{ ...sealed.context.recipients[0], key_id: 'x' }] })).toBe('recipients/0/key_id');
    const spaced = utf8(JSON.stringify(context, null, 1));
    const rest = sealed.bytes.subarray(7 + sealed.contextBytes.length);
    const start = concatBytes(sealed.bytes.subarray(0, 5), Uint8Array.of(spaced.length >>> 8, spaced.length));
    refuses('malformed', () => parseE2eRequest(concatBytes(start, spaced, rest)));
    refuses('too_large', () => parseE2eRequestHeader(concatBytes(sealed.bytes.subarray(0, 5), Uint8Array.of(0xff, 0xff))));
    refuses('malformed', () => parseE2eRequest(utf8('IE2E\x02')));
    refuses('malformed', () => parseE2eRequest(utf8('{"model":"pico"}')));
  });

  test('that is longer or shorter than its body_bytes is refused before anything is opened', () => {
    const long = sealTo(recipients, random.bytes(5000));
    const claimed = (length: number) => {
      const bytes = canonicalJsonBytes({ ...long.context, body_bytes: length });
      return concatBytes(
        long.bytes.subarray(0, 5),
        Uint8Array.of(bytes.length >>> 8, bytes.length),
        bytes,
        long.bytes.subarray(7 + long.contextBytes.length),
      );
    };
    refuses('size_mismatch', () => parseE2eRequest(claimed(1)));
    refuses('size_mismatch', () => parseE2eRequest(claimed(5400)));
    expect(parseE2eRequest(claimed(4990)).context.body_bytes).toBe(4990);
    refuses('open_failed', () => openAs(recipients, claimed(4990), 0));
  });

  test('opens for its recipients only, each at its own index', () => {
    const openAt = (index: number, own: number) => openE2eRequest(nodeE2eCrypto, sealed.bytes, index, (recipients[own] as Recipient).pair);
    for (const own of [0, 1, 2]) {
      expect(openAt(own, own).body).toEqual(body);
      for (const index of [0, 1, 2, 3, -1, 0.5]) if (index !== own) refuses('wrong_recipient', () => openAt(index, own));
    }
    refuses('wrong_recipient', () => openAs(recipientsOf(3, 9), sealed.bytes, 0));
  });

  test('with altered enc, wrapped key or commitment', () => {
    const at = header.headerBytes - 32 - 3 * 88;
    refuses('malformed', () => parseE2eRequest(withFlippedBit(sealed.bytes, at)));
    refuses('open_failed', () => openAs(recipients, withFlippedBit(sealed.bytes, at + 8), 0));
    refuses('open_failed', () => openAs(recipients, withFlippedBit(sealed.bytes, at + 40), 0));
    for (const index of [0, 1, 2]) {
      refuses('commitment_mismatch', () => openAs(recipients, withFlippedBit(sealed.bytes, header.headerBytes - 1), index));
    }
    const smallOrder = sealed.bytes.slice();
    smallOrder.fill(0, at + 8, at + 40);
    refuses('bad_key', () => openAs(recipients, smallOrder, 0));
  });

  test('with two data keys opens for one candidate only, for either commitment', () => {
    // An attacker knows the context and the recipients.
    const contextHash = sha256(sealed.contextBytes);
    const info = concatBytes(utf8('inference/e2e/v1\0'), contextHash);
    const keys = [random.bytes(32), random.bytes(32), random.bytes(32)] as const;
    const prk = hkdfExtract(nodeE2eCrypto, contextHash, keys[0]);
    const commitment = hkdfExpandBlock(nodeE2eCrypto, prk, 32, utf8('inference/e2e/v1 commit'));
    const secret = {
      key: hkdfExpandBlock(nodeE2eCrypto, prk, 32, utf8('inference/e2e/v1 key')),
      baseNonce: hkdfExpandBlock(nodeE2eCrypto, prk, 12, utf8('inference/e2e/v1 nonce')),
    };
    const wrapped = recipients.map(({ x25519, key_id }, index) => {
      const sender = setupBaseSender(nodeE2eCrypto, x25519, info);
      return concatBytes(fromHex(key_id), sender.enc, sealOnly(nodeE2eCrypto, sender, new Uint8Array(0), keys[index] as Uint8Array));
    });
    const head = canonicalJsonBytes({});
    const plaintext = encodeE2eParts(
      [
        { kind: 'head', bytes: head },
        { kind: 'body', bytes: body },
      ],
      'padme',
    );
    const start = sealed.bytes.subarray(0, 7 + sealed.contextBytes.length);
    const forged = concatBytes(
      start,
      Uint8Array.of(3),
      ...wrapped,
      commitment,
      new E2eFrameSealer(nodeE2eCrypto, secret).seal(plaintext, true),
    );
    expect(openAs(recipients, forged, 0).body).toEqual(body);
    refuses('commitment_mismatch', () => openAs(recipients, forged, 1));
    refuses('commitment_mismatch', () => openAs(recipients, forged, 2));
  });

  test('with frames dropped, repeated, swapped, shortened or marked final', () => {
    const long = sealTo(recipients, random.bytes(3 * E2E_CHUNK_BYTES));
    const { headerBytes } = parseE2eRequest(long.bytes);
    const start = long.bytes.subarray(0, headerBytes);
    const [a, b, c, d] = framesOf(long.bytes.subarray(headerBytes)) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array];
    const asFinal = (frame: Uint8Array) => concatBytes(Uint8Array.of(1), frame.subarray(1));
    const open = (...frames: readonly Uint8Array[]) => openAs(recipients, concatBytes(start, ...frames), 0);
    expect(open(a, b, c, d).body).toHaveLength(3 * E2E_CHUNK_BYTES);
    refuses('open_failed', () => open(b, a, c, d));
    refuses('open_failed', () => open(a, a, c, d));
    refuses('size_mismatch', () => open(a, b, d));
    refuses('size_mismatch', () => open(a, b, asFinal(c)));
    refuses('truncated', () => open(a, b, c));
    refuses('size_mismatch', () => open(a, b, c, c, d));
    refuses('malformed', () =>
      open(
        a,
        b,
        d.map((byte, index) => (index === 0 ? 0 : byte)),
        asFinal(c),
      ),
    );
    refuses('malformed', () => open(encodeE2eFrame(2, a.subarray(4)), b, c, d));
    refuses('malformed', () => open(encodeE2eFrame(0x80, utf8('{}'))));
    refuses('malformed', () => open(e2eKeepAlive(), a, b, c, d));
    refuses('too_large', () => open(encodeE2eFrame(0, new Uint8Array(MAX_E2E_FRAME_BYTES + 1))));
    // The frames of another request under the same recipients.
    const other = sealTo(recipients, random.bytes(3 * E2E_CHUNK_BYTES));
    const foreign = framesOf(other.bytes.subarray(parseE2eRequest(other.bytes).headerBytes))[1] as Uint8Array;
    refuses('open_failed', () => open(a, foreign, c, d));
  });

  test('with plaintext that a forger composed otherwise', () => {
    const contextHash = sha256(sealed.contextBytes);
    const dataKey = random.bytes(32);
    const sender = setupBaseSender(
      nodeE2eCrypto,
      recipients[0]?.x25519 as Uint8Array,
      concatBytes(utf8('inference/e2e/v1\0'), contextHash),
    );
    const prk = hkdfExtract(nodeE2eCrypto, contextHash, dataKey);
    const derive = (label: string, length: number) => hkdfExpandBlock(nodeE2eCrypto, prk, length, utf8(`inference/e2e/v1 ${label}`));
    const at = 7 + sealed.contextBytes.length + 1;
    const own = concatBytes(sealed.bytes.subarray(at, at + 8), sender.enc, sealOnly(nodeE2eCrypto, sender, new Uint8Array(0), dataKey));
    const open = (plaintext: Uint8Array) => {
      const sealer = new E2eFrameSealer(nodeE2eCrypto, { key: derive('key', 32), baseNonce: derive('nonce', 12) });
      const others = sealed.bytes.subarray(at + 88, header.headerBytes - 32);
      return openAs(
        recipients,
        concatBytes(sealed.bytes.subarray(0, at), own, others, derive('commit', 32), sealer.seal(plaintext, true)),
        0,
      );
    };
    const head = { kind: 'head', bytes: utf8('{}') } as const;
    const text = { kind: 'body', bytes: body } as const;
    const good = encodeE2eParts([head, text], 'padme');
    expect(open(good).body).toEqual(body);
    const last = good.lastIndexOf(0);
    refuses('malformed', () => open(withFlippedBit(good, last)));
    refuses('malformed', () => open(concatBytes(good, new Uint8Array(5))));
    refuses('size_mismatch', () => open(good.subarray(0, good.length - 1)));
    refuses('malformed', () => open(encodeE2eParts([text, head], 'padme')));
    refuses('malformed', () => open(encodeE2eParts([head, text, text], 'padme').subarray(0, good.length)));
    refuses('malformed', () => open(encodeE2eParts([head, { kind: 'proof', bytes: body }], 'padme')));
    refuses('size_mismatch', () => open(encodeE2eParts([head, { kind: 'body', bytes: body.subarray(1) }], 'padme')));
    refuses('malformed', () => open(encodeE2eParts([{ kind: 'head', bytes: utf8('[]') }, text], 'padme')));
    refuses('malformed', () => open(encodeE2eParts([{ kind: 'head', bytes: utf8('{ }') }, text], 'padme')));
    refuses('malformed', () => open(encodeE2eParts([{ kind: 'head', bytes: utf8('{"unknown":1}') }, text], 'padme')));
    // Padding before the body.
    const content = 2 * 5 + head.bytes.length + body.length;
    const parts = good.subarray(0, content);
    const padding = (length: number) => concatBytes(Uint8Array.of(0, 0, 0, 0, length), new Uint8Array(length));
    const rest = good.length - content - 5;
    expect(open(concatBytes(parts, padding(rest))).body).toEqual(body);
    refuses('malformed', () =>
      open(concatBytes(parts.subarray(0, 5 + head.bytes.length), padding(rest), parts.subarray(5 + head.bytes.length))),
    );
    // An announced length beyond the bytes, and padding beyond an eighth.
    refuses('malformed', () => open(good.map((byte, index) => (index === 11 ? 0 : byte))));
    refuses('malformed', () => open(encodeE2eParts([head, text], 'stream')));
  });
});

describe('a sealed answer', () => {
  const opened = openAs(recipients, sealed.bytes, 0);
  const bodies = [random.bytes(10), random.bytes(600), random.bytes(20)];
  const { pieces } = sealAnswer(opened.answerSealer(), bodies);
  const [nonce, head, first, second, third, final] = pieces as [Uint8Array, Uint8Array, Uint8Array, Uint8Array, Uint8Array, Uint8Array];

  function answers(code: E2eErrorCode, ...bytes: readonly Uint8Array[]): void {
    refuses(code, () => openAll(candidate(0).answerOpener(), bytes));
  }

  test('of another candidate or another request does not open', () => {
    for (const other of [candidate(1), candidate(2), candidate(0, sealTo(recipients))]) {
      refuses('open_failed', () => openAll(other.answerOpener(), pieces));
    }
    const again = sealAnswer(opened.answerSealer(), bodies).pieces;
    answers('open_failed', nonce, head, again[2] as Uint8Array);
    answers('open_failed', again[0] as Uint8Array, head);
  });

  test('with frames dropped, repeated, swapped or marked final', () => {
    answers('truncated', nonce, head, second, third, final);
    answers('truncated', nonce, head, first, second, final);
    answers('truncated', nonce, head, final);
    answers('truncated', nonce, head, second, first, third, final);
    answers('open_failed', nonce, head, first, first, second);
    answers('open_failed', nonce, head, withFlippedBit(second, 20), third, final);
    answers('open_failed', nonce, head, concatBytes(Uint8Array.of(1), first.subarray(1)));
    answers('open_failed', nonce, head, first, second, third, concatBytes(Uint8Array.of(0), final.subarray(1)));
    answers('truncated', nonce, head, first, second, third);
    answers('truncated');
    answers('truncated', nonce);
    answers('after_final', ...pieces, e2eKeepAlive());
    answers('after_final', ...pieces, encodeE2eAbort({ status: 500, code: 'x', message: '' }));
    answers('malformed', nonce, head, encodeE2eFrame(4, first.subarray(4)));
    answers('malformed', nonce, head, encodeE2eFrame(0, new Uint8Array(15)));
    answers('malformed', nonce, head, encodeE2eFrame(1, new Uint8Array(0)));
    answers('malformed', nonce, encodeE2eFrame(0x80, utf8('{"status":200}')));
    answers('too_large', nonce, encodeE2eFrame(0x80, new Uint8Array(5000)));
    answers('too_large', nonce, encodeE2eFrame(0, new Uint8Array(MAX_E2E_FRAME_BYTES + 1)));
  });

  test('with many frames dropped is truncated within the limits of the search, which follow from the frame length', () => {
    const codeAfterDropping = (dropped: number, length: number): E2eErrorCode | null => {
      const sealer = opened.answerSealer();
      const start = [sealer.start(), sealer.seal([{ kind: 'head', bytes: utf8('{"content_type":"a/b","status":200}') }], 'stream')];
      for (let count = 0; count < dropped; count++) sealer.seal([], 'stream');
      const later = sealer.seal([{ kind: 'body', bytes: new Uint8Array(length) }], 'stream');
      return codeOf(() => openAll(candidate(0).answerOpener(), [...start, later]));
    };
    expect(codeAfterDropping(64, 10)).toBe('truncated');
    expect(codeAfterDropping(65, 10)).toBe('open_failed');
    const fullFrame = E2E_CHUNK_BYTES - 10;
    expect(codeAfterDropping(32, fullFrame)).toBe('truncated');
    expect(codeAfterDropping(33, fullFrame)).toBe('open_failed');
  });

  test('cut off at each byte is truncated, and gives out whole parts only', () => {
    const bytes = concatBytes(...pieces);
    for (let length = 0; length < bytes.length; length++) {
      const opener = candidate(0).answerOpener();
      const { parts } = opener.push(bytes.subarray(0, length));
      for (const [index, { bytes: part }] of parts.slice(1).entries()) expect(equalBytes(part, bodies[index] as Uint8Array)).toBe(true);
      refuses('truncated', () => opener.end());
      expect(opener.sealedSha256).toBeNull();
      const meter = new E2eAnswerMeter(nodeE2eCrypto);
      meter.push(bytes.subarray(0, length));
      refuses('truncated', () => meter.end());
    }
  });

  test('with any bit changed is refused, and stays refused', () => {
    const bytes = concatBytes(...pieces);
    for (let byte = 0; byte < bytes.length; byte++) {
      const opener = candidate(0).answerOpener();
      const altered = withFlippedBit(bytes, byte, random.below(8));
      const code = codeOf(() => {
        opener.push(altered);
        opener.end();
      });
      expect(code, `byte ${byte}`).not.toBeNull();
      expect(opener.isFinal).toBe(false);
      if (code !== 'truncated' && code !== 'aborted') refuses(code as E2eErrorCode, () => opener.push(bytes));
    }
  });

  test('that a provider composed otherwise', () => {
    const sealer = () => {
      const one = opened.answerSealer();
      return { one, start: one.start() };
    };
    const without = sealer();
    without.one.sealedSha256();
    answers('malformed', without.start, without.one.finish(proof));
    const twice = sealer();
    answers(
      'malformed',
      twice.start,
      twice.one.seal(
        [
          { kind: 'head', bytes: body },
          { kind: 'head', bytes: body },
        ],
        'stream',
      ),
    );
    const headless = sealer();
    answers('malformed', headless.start, headless.one.seal([{ kind: 'body', bytes: body }], 'stream'));
  });

  test('with an abort frame by a provider is refused by the coordinator', () => {
    const meter = new E2eAnswerMeter(nodeE2eCrypto);
    meter.push(nonce);
    refuses('malformed', () => meter.push(encodeE2eAbort({ status: 500, code: 'x', message: '' })));
  });
});

test('a parser that got a whole header in pieces refuses further bytes', () => {
  const parser = new E2eRequestParser();
  parser.push(sealed.bytes.subarray(0, header.headerBytes));
  expect(toHex(parser.header?.commitment ?? new Uint8Array(0))).toBe(toHex(header.commitment));
  refuses('malformed', () => parser.push(Uint8Array.of(9, 0, 0, 16)));
});

test('every error has a refusal code of the client', () => {
  expect(Object.keys(E2E_REFUSALS).sort()).toEqual([...E2E_ERROR_CODES].sort());
});

test('JSON of heads, proofs and aborts is canonical and not deeply nested', () => {
  refuses('malformed', () => parseE2eAnswerHead(utf8('{"status":200,"content_type":"a/b"}')));
  refuses('malformed', () => parseE2eProof(utf8(JSON.stringify(proof))));
  refuses('malformed', () => parseE2eAnswerHead(utf8('{"content_type":"a/b","status":100}')));
  expect(parseE2eAnswerHead(utf8('{"content_type":"a/b","status":200}'))).toEqual({ content_type: 'a/b', status: 200 });
  refuses('malformed', () => parseE2eProof(utf8(`{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`)));
});
