/**
 * Builds `docs/e2e-vectors.json` from fixed keys: two exchanges with all intermediate values, and altered bytes that must be refused.
 * Texts stand for their UTF-8; every other byte string is lowercase hexadecimal.
 */

import { concatBytes, fromHex, fromUtf8, toHex, utf8 } from '../../src/bytes.js';
import { sha256, sha256Hex } from '../../src/crypto/digest.js';
import { e2eKeyPair, nodeE2eCrypto } from '../../src/crypto/e2e-crypto.js';
import { ed25519KeyPairFrom } from '../../src/crypto/index.js';
import { generateSealingKeyPair, sealingKeyPairFrom } from '../../src/crypto/x25519.js';
import { deriveAnswerSecret } from '../../src/e2e/answer.js';
import { e2eKeepAlive, encodeE2eAbort, encodeE2eAnswerHead } from '../../src/e2e/answer-json.js';
import type { E2eCrypto } from '../../src/e2e/crypto.js';
import { E2eError } from '../../src/e2e/error.js';
import { exportSecret, hkdfExpandBlock, hkdfExtract, kemSecret, setupBaseRecipient } from '../../src/e2e/hpke.js';
import { E2E_CHUNK_BYTES } from '../../src/e2e/limits.js';
import { type E2ePadding, type E2ePart, encodeE2eParts, padmeLength } from '../../src/e2e/parts.js';
import {
  type E2eRequestTerms,
  type OpenedE2eRequest,
  openE2eRequest,
  type SealedE2eRequest,
  sealE2eRequest,
} from '../../src/e2e/request.js';
import { parseE2eRequest } from '../../src/e2e/request-parser.js';
import { keyIdFromKeyHash, type ProviderId } from '../../src/ids.js';
import { checkpointText, timeKey } from '../../src/log/checkpoint.js';
import { formatNoteKey, formatSignedNote, signNote } from '../../src/log/signed-note.js';
import { withFlippedBit } from '../seeded-random.js';
import { proof } from './samples.js';

/** 32 bytes derived from a text. */
const secretOf = (name: string): Uint8Array => sha256(utf8(`inference e2e vectors: ${name}`));

interface Exchange {
  readonly name: string;
  readonly terms: E2eRequestTerms;
  readonly recipients: number;
  readonly body: Uint8Array;
  readonly answering: number;
  /** Parts of each sealed piece of the answer. */
  readonly answer: readonly { readonly padding: E2ePadding; readonly parts: readonly E2ePart[] }[];
}

const LOG = ed25519KeyPairFrom(secretOf('log key'));
const LOG_NAME = 'log.example/e2e/log';
const LOG_HEAD = { size: 7, root: 'ab'.repeat(32) };

/** Signed note of a tree head, with the two signatures of the log. */
function checkpointOf({ size, root }: typeof LOG_HEAD): string {
  const text = checkpointText({ origin: LOG_NAME, size, root: fromHex(root) });
  const key = { name: LOG_NAME, type: 'ed25519', publicKey: LOG.publicKey } as const;
  const signatures = [key, timeKey(key)].map((one) => signNote(sha256, one, LOG.sign, text, 1_790_000_000));
  return formatSignedNote({ text, signatures });
}

const STREAM: Exchange = {
  name: 'stream of the second of two candidates',
  terms: {
    endpoint: '/v1/chat/completions',
    model: 'pico',
    stream: true,
    max_tokens: 64,
    nonce: 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8',
    issued_at: 1_790_000_000_000,
    expires_at: 1_790_000_060_000,
    log: LOG_HEAD,
  },
  recipients: 2,
  body: utf8('{"model":"pico","stream":true,"messages":[{"role":"user","content":"Grüß Gott"}]}'),
  answering: 1,
  answer: [
    {
      padding: 'stream',
      parts: [encodeE2eAnswerHead({ status: 200, content_type: 'text/event-stream', log_checkpoint: checkpointOf(LOG_HEAD) })],
    },
    { padding: 'stream', parts: [{ kind: 'body', bytes: utf8('data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n') }] },
    {
      padding: 'stream',
      parts: [
        { kind: 'body', bytes: utf8('data: {"choices":[{"delta":{"content":" there"}}]}\n\n') },
        { kind: 'body', bytes: utf8('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n') },
      ],
    },
  ],
};

const PLAIN: Exchange = {
  name: 'plain answer, two request frames',
  terms: { ...STREAM.terms, endpoint: '/v1/embeddings', stream: false },
  recipients: 1,
  body: Uint8Array.from({ length: 300_000 }, (_, index) => index % 251),
  answering: 0,
  answer: [
    {
      padding: 'padme',
      parts: [
        encodeE2eAnswerHead({ status: 200, content_type: 'application/json' }),
        { kind: 'body', bytes: Uint8Array.from({ length: 270_000 }, (_, index) => index % 253) },
      ],
    },
  ],
};

/** Longer values are represented by SHA-256 and length. */
const MAX_PRINTED_BYTES = 4096;

function printed(bytes: Uint8Array): object | string {
  return bytes.length <= MAX_PRINTED_BYTES ? toHex(bytes) : { length: bytes.length, sha256: sha256Hex(bytes) };
}

/** Crypto with fixed random values, in the order in which the implementation draws them. */
function fixedCrypto(random: readonly Uint8Array[], ephemerals: readonly Uint8Array[]): E2eCrypto {
  const values = [...random];
  const pairs = [...ephemerals];
  return {
    ...nodeE2eCrypto,
    randomBytes: () => (values.shift() as Uint8Array).slice(),
    generateX25519: () => e2eKeyPair(sealingKeyPairFrom(pairs.shift() as Uint8Array)),
  };
}

function recipientsOf(count: number) {
  return Array.from({ length: count }, (_, index) => {
    const privateKey = secretOf(`recipient ${index}`);
    const { publicKey } = sealingKeyPairFrom(privateKey);
    return {
      provider_id: toHex(secretOf(`provider ${index}`).subarray(0, 16)) as ProviderId,
      key_id: keyIdFromKeyHash(sha256(publicKey)),
      x25519: publicKey,
      privateKey,
      ephemeral: secretOf(`ephemeral ${index}`),
    };
  });
}

function seal({ terms, recipients, body }: Exchange): SealedE2eRequest {
  const all = recipientsOf(recipients);
  const crypto = fixedCrypto(
    [secretOf('data key')],
    all.map(({ ephemeral }) => ephemeral),
  );
  return sealE2eRequest(crypto, { context: terms, recipients: all, head: { client_nonce: 'A'.repeat(43) }, body });
}

function open({ recipients }: Exchange, bytes: Uint8Array, index: number): OpenedE2eRequest {
  const own = recipientsOf(recipients)[index];
  const pair = own === undefined ? generateSealingKeyPair() : sealingKeyPairFrom(own.privateKey);
  return openE2eRequest(fixedCrypto([secretOf('response nonce')], []), bytes, index, e2eKeyPair(pair));
}

function sealAnswer(exchange: Exchange, bytes: Uint8Array) {
  const opened = open(exchange, bytes, exchange.answering);
  const sealer = opened.answerSealer();
  const start = sealer.start();
  const pieces = exchange.answer.map(({ parts, padding }) => sealer.seal(parts, padding));
  const responseBytes = sealer.responseBytes;
  const sealedSha256 = sealer.sealedSha256();
  return { opened, start, pieces, final: sealer.finish(proof), sealedSha256, responseBytes };
}

function requestVector(exchange: Exchange, sealed: SealedE2eRequest): object {
  const contextHash = sha256(sealed.contextBytes);
  const info = concatBytes(utf8('inference/e2e/v1\0'), contextHash);
  const dataKey = secretOf('data key');
  const prk = hkdfExtract(nodeE2eCrypto, contextHash, dataKey);
  const { wrappedKeys, commitment, headerBytes } = parseE2eRequest(sealed.bytes);
  const head = utf8(`{"client_nonce":"${'A'.repeat(43)}"}`);
  const plaintext = encodeE2eParts(
    [
      { kind: 'head', bytes: head },
      { kind: 'body', bytes: exchange.body },
    ],
    'padme',
  );
  return {
    context_json: fromUtf8(sealed.contextBytes),
    context_sha256: sealed.contextSha256,
    info: toHex(info),
    data_key: toHex(dataKey),
    prk: toHex(prk),
    key: toHex(hkdfExpandBlock(nodeE2eCrypto, prk, 32, utf8('inference/e2e/v1 key'))),
    nonce: toHex(hkdfExpandBlock(nodeE2eCrypto, prk, 12, utf8('inference/e2e/v1 nonce'))),
    commitment: toHex(commitment),
    recipients: recipientsOf(exchange.recipients).map(({ privateKey, ephemeral, x25519, key_id }, index) => {
      const own = e2eKeyPair(sealingKeyPairFrom(privateKey));
      const { enc, wrappedKey } = wrappedKeys[index] as (typeof wrappedKeys)[0];
      const context = setupBaseRecipient(nodeE2eCrypto, own, enc, info);
      return {
        private_key: toHex(privateKey),
        public_key: toHex(x25519),
        key_id,
        ephemeral_private_key: toHex(ephemeral),
        enc: toHex(enc),
        shared_secret: toHex(kemSecret(nodeE2eCrypto, own, enc, enc, x25519)),
        hpke_key: toHex(context.key),
        hpke_base_nonce: toHex(context.baseNonce),
        wrapped_key: toHex(wrappedKey),
        response_secret: toHex(exportSecret(nodeE2eCrypto, context, utf8('inference/e2e/v1 response'), 32)),
        receipt_key: toHex(exportSecret(nodeE2eCrypto, context, utf8('inference/e2e/v1 receipt'), 32)),
        request_commitment: sealed.candidates[index]?.commitments.request(sha256(exchange.body)),
      };
    }),
    head: fromUtf8(head),
    body: exchange === PLAIN ? { length: exchange.body.length, byte: 'index mod 251' } : fromUtf8(exchange.body),
    plaintext: printed(plaintext),
    header_bytes: headerBytes,
    sealed: printed(sealed.bytes),
    sealed_request_sha256: sealed.sealedRequestSha256,
  };
}

function answerVector(exchange: Exchange, sealed: SealedE2eRequest): object {
  const { opened, start, pieces, final, sealedSha256, responseBytes } = sealAnswer(exchange, sealed.bytes);
  const recipient = recipientsOf(exchange.recipients)[exchange.answering] as ReturnType<typeof recipientsOf>[0];
  const info = concatBytes(utf8('inference/e2e/v1\0'), fromHex(sealed.contextSha256));
  const context = setupBaseRecipient(nodeE2eCrypto, e2eKeyPair(sealingKeyPairFrom(recipient.privateKey)), opened.enc, info);
  const responseSecret = exportSecret(nodeE2eCrypto, context, utf8('inference/e2e/v1 response'), 32);
  const { key, baseNonce } = deriveAnswerSecret(nodeE2eCrypto, responseSecret, opened.enc, start, 32);
  const bodies = exchange.answer.flatMap(({ parts }) => parts.filter(({ kind }) => kind === 'body').map(({ bytes }) => bytes));
  return {
    recipient: exchange.answering,
    response_nonce: toHex(start),
    key: toHex(key),
    nonce: toHex(baseNonce),
    pieces: exchange.answer.map(({ padding, parts }, index) => ({
      padding,
      parts: parts.map(({ kind, bytes }) => {
        if (bytes.length > MAX_PRINTED_BYTES) return { kind, length: bytes.length, byte: 'index mod 253' };
        return { kind, text: fromUtf8(bytes) };
      }),
      sealed: printed(pieces[index] as Uint8Array),
    })),
    proof,
    final_frame: toHex(final),
    sealed_response_sha256: sealedSha256,
    response_bytes: responseBytes,
    response_commitment: opened.commitments.response(sha256(concatBytes(...bodies))),
    sealed: printed(concatBytes(start, ...pieces, final)),
  };
}

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof E2eError) return error.code;
    throw error;
  }
  throw new Error('altered bytes were accepted');
}

function refusedRequests(sealed: SealedE2eRequest): object[] {
  const { bytes, contextBytes } = sealed;
  const { headerBytes } = parseE2eRequest(bytes);
  const end = bytes.length;
  const swapped = concatBytes(
    bytes.subarray(0, 7),
    utf8(fromUtf8(contextBytes).replace('"max_tokens":64', '"max_tokens":65')),
    bytes.subarray(7 + contextBytes.length),
  );
  const cases: readonly (readonly [name: string, recipient: number, bytes: Uint8Array])[] = [
    ['another version', 0, withFlippedBit(bytes, 4)],
    ['max_tokens of the context changed', 0, swapped],
    ['key id of a wrapped key changed', 0, withFlippedBit(bytes, 7 + contextBytes.length + 1)],
    ['enc changed', 0, withFlippedBit(bytes, 7 + contextBytes.length + 1 + 8)],
    ['commitment changed', 1, withFlippedBit(bytes, headerBytes - 1)],
    ['frame marked as not final', 0, withFlippedBit(bytes, headerBytes)],
    ['last byte missing', 0, bytes.subarray(0, end - 1)],
    ['last byte changed', 0, withFlippedBit(bytes, end - 1)],
    ['a byte after the final frame', 0, concatBytes(bytes, Uint8Array.of(0))],
    ['opened with another recipient index', 2, bytes],
  ];
  return cases.map(([name, recipient, altered]) => ({
    name,
    recipient,
    sealed: toHex(altered),
    code: codeOf(() => open(STREAM, altered, recipient)),
  }));
}

function refusedAnswers(sealed: SealedE2eRequest): object[] {
  const { start, pieces, final } = sealAnswer(STREAM, sealed.bytes);
  const [head, first, second] = pieces as [Uint8Array, Uint8Array, Uint8Array];
  const cases: readonly (readonly [name: string, candidate: number, pieces: readonly Uint8Array[]])[] = [
    ['attributed to another candidate', 0, [start, head, first, second, final]],
    ['a frame dropped', 1, [start, head, second, final]],
    ['the head dropped', 1, [start, first, second, final]],
    ['two frames swapped', 1, [start, head, second, first, final]],
    ['a frame repeated', 1, [start, head, first, first, second, final]],
    ['no final frame', 1, [start, head, first, second]],
    ['a frame changed', 1, [start, head, withFlippedBit(first, 9), second, final]],
    ['a frame marked final', 1, [start, head, concatBytes(Uint8Array.of(1), first.subarray(1))]],
    ['final frame cut off', 1, [start, head, first, second, final.subarray(0, final.length - 1)]],
    ['a keep-alive after the final frame', 1, [start, head, first, second, final, e2eKeepAlive()]],
    ['aborted', 1, [start, head, encodeE2eAbort({ status: 504, code: 'timeout', message: 'The provider stalled.' })]],
  ];
  return cases.map(([name, candidate, altered]) => ({
    name,
    recipient: candidate,
    sealed: toHex(concatBytes(...altered)),
    code: codeOf(() => {
      const opener = (sealed.candidates[candidate] as SealedE2eRequest['candidates'][0]).answerOpener();
      opener.push(concatBytes(...altered));
      opener.end();
    }),
  }));
}

export function buildVectors(): object {
  const stream = seal(STREAM);
  const plain = seal(PLAIN);
  return {
    description:
      'Worked vectors of docs/e2e-protocol.md. Byte strings are lowercase hexadecimal; long ones are given by length and SHA-256.',
    padme: [1, 2, 7, 9, 100, 1000, 1025, 5000, 65_537, E2E_CHUNK_BYTES + 1, 1_000_000].map((length) => ({
      length,
      padded: padmeLength(length),
    })),
    exchanges: [
      { name: STREAM.name, request: requestVector(STREAM, stream), answer: answerVector(STREAM, stream) },
      { name: PLAIN.name, request: requestVector(PLAIN, plain), answer: answerVector(PLAIN, plain) },
    ],
    log_key: formatNoteKey(sha256, { name: LOG_NAME, type: 'ed25519', publicKey: LOG.publicKey }),
    refused_requests: refusedRequests(stream),
    refused_answers: refusedAnswers(stream),
  };
}
