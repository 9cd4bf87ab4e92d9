/**
 * Sealing and opening of requests in the end-to-end mode. The client seals head and body under a random data key.
 *
 * HPKE wraps the data key for each candidate. The key commitment proves that all candidates get the same data key.
 */
import Type, { type Static } from 'typebox';
import { concatBytes, equalBytes, fromHex, toBase64Url, toHex, utf8 } from '../bytes.js';
import { canonicalJsonBytes } from '../canonical-json.js';
import { type KeyId, keyIdFromKeyHash, type ProviderId } from '../ids.js';
import { ClientNonceSchema } from '../job-context.js';
import { lazyValidator } from '../lazy-validator.js';
import { E2eAnswerOpener, E2eAnswerSealer } from './answer.js';
import { E2eCommitments } from './commitments.js';
import { type E2eContext, encodeE2eContext } from './context.js';
import type { E2eCrypto, X25519KeyPair } from './crypto.js';
import { E2eError } from './error.js';
import { E2E_FINAL, E2eFrameOpener, E2eFrameSealer, type E2eFrameSecret, E2eFrameWalker } from './frames.js';
import { type HpkeContext, hkdfExpandBlock, hkdfExtract, openOnly, sealOnly, setupBaseRecipient, setupBaseSenders } from './hpke.js';
import { parseCanonicalJson } from './json.js';
import { E2E_CHUNK_BYTES, MAX_E2E_REQUEST_HEAD_BYTES, MAX_E2E_VISION_BODY_BYTES } from './limits.js';
import { E2E_PART_HEADER_BYTES, type E2ePart, E2ePartReader, encodeE2eParts, paddedLength } from './parts.js';
import { E2E_MAGIC, parseE2eRequest } from './request-parser.js';

const X25519_BYTES = 32;
const DATA_KEY_BYTES = 32;
const COMMITMENT_BYTES = 32;

const INFO_PREFIX = utf8('inference/e2e/v1\0');
const KEY_LABEL = utf8('inference/e2e/v1 key');
const NONCE_LABEL = utf8('inference/e2e/v1 nonce');
const COMMIT_LABEL = utf8('inference/e2e/v1 commit');
const EMPTY = new Uint8Array(0);

/** Head part of a request: values that only the provider sees, not the coordinator. */
export const E2eRequestHeadSchema = Type.Object(
  {
    /** base64url of 32 bytes. Requests with the same secret share prefix-cache entries. Absent: no sharing. */
    cache_secret: Type.Optional(ClientNonceSchema),
    /** Value of `X-Inference-Nonce`, repeated in the receipt. */
    client_nonce: Type.Optional(ClientNonceSchema),
  },
  { additionalProperties: false },
);
export type E2eRequestHead = Static<typeof E2eRequestHeadSchema>;
const headValidator = lazyValidator(E2eRequestHeadSchema);

/** Candidate whose key the client verified. */
export interface E2eRecipient {
  readonly provider_id: ProviderId;
  readonly key_id: KeyId;
  /** 32 raw bytes. */
  readonly x25519: Uint8Array;
}

/** Members of the context that the client chooses. `sealE2eRequest` computes the others. */
export type E2eRequestTerms = Omit<E2eContext, 'v' | 'body_bytes' | 'recipients' | 'nonce'> & Partial<Pick<E2eContext, 'nonce'>>;

export interface E2eRequestToSeal {
  readonly context: E2eRequestTerms;
  /** Candidates, 1 to 8, of distinct providers. */
  readonly recipients: readonly E2eRecipient[];
  readonly head?: E2eRequestHead;
  /** HTTP body of the plain-mode request, byte for byte. */
  readonly body: Uint8Array;
}

/** What the client needs to open an answer from one candidate. */
export interface E2eCandidate {
  readonly enc: Uint8Array;
  readonly commitments: E2eCommitments;
  /** A new opener of this candidate's answer. */
  answerOpener(): E2eAnswerOpener;
}

export interface SealedE2eRequest {
  readonly bytes: Uint8Array;
  readonly context: E2eContext;
  /** Canonical JSON. */
  readonly contextBytes: Uint8Array;
  /** Lowercase hex SHA-256 of `contextBytes`, as in the receipt. */
  readonly contextSha256: string;
  /** Lowercase hex SHA-256 of `bytes`, as in the receipt. */
  readonly sealedRequestSha256: string;
  /** In the order of the recipients. */
  readonly candidates: readonly E2eCandidate[];
}

/**
 * Seals a request to each recipient.
 *
 * @throws {E2eError} `bad_context`, `too_large`, or `bad_key` (also if a key id does not match its key).
 */
export function sealE2eRequest(crypto: E2eCrypto, request: E2eRequestToSeal): SealedE2eRequest {
  const { recipients, head = {}, body } = request;
  if (body.length > MAX_E2E_VISION_BODY_BYTES) throw new E2eError('too_large', `a body of ${body.length} bytes is over the cap`);
  for (const recipient of recipients) requireKeyId(crypto, recipient);
  const context: E2eContext = {
    ...request.context,
    v: 1,
    nonce: request.context.nonce ?? toBase64Url(crypto.randomBytes(32)),
    body_bytes: body.length,
    recipients: recipients.map(({ provider_id, key_id }) => ({ provider_id, key_id })),
  };
  const contextBytes = encodeE2eContext(context);
  const contextHash = crypto.sha256(contextBytes);
  const info = concatBytes(INFO_PREFIX, contextHash);
  const dataKey = crypto.randomBytes(DATA_KEY_BYTES);
  const header = [E2E_MAGIC, uint16(contextBytes.length), contextBytes, Uint8Array.of(recipients.length)];
  const senders = setupBaseSenders(
    crypto,
    recipients.map(({ x25519 }) => x25519),
    info,
  );
  const candidates = senders.map((sender, index) => {
    header.push(fromHex(context.recipients[index]?.key_id ?? ''), sender.enc, sealOnly(crypto, sender, EMPTY, dataKey));
    return candidateOf(crypto, sender, sender.enc);
  });
  const { secret, commitment } = requestSecret(crypto, contextHash, dataKey);
  dataKey.fill(0);
  const plaintext = encodeE2eParts(
    [
      { kind: 'head', bytes: encodeHead(head) },
      { kind: 'body', bytes: body },
    ],
    'padme',
  );
  const bytes = concatBytes(...header, commitment, ...sealChunks(new E2eFrameSealer(crypto, secret), plaintext));
  const sealedRequestSha256 = toHex(crypto.sha256(bytes));
  return { bytes, context, contextBytes, contextSha256: toHex(contextHash), sealedRequestSha256, candidates };
}

export interface OpenedE2eRequest {
  readonly context: E2eContext;
  /** Lowercase hex, for the receipt. */
  readonly contextSha256: string;
  /** Lowercase hex SHA-256 of the whole sealed request, for the receipt. */
  readonly sealedRequestSha256: string;
  /** Encapsulated key, 32 bytes. The caller must reject a repeated value. */
  readonly enc: Uint8Array;
  readonly head: E2eRequestHead;
  /** Exactly `context.body_bytes` bytes. */
  readonly body: Uint8Array;
  readonly commitments: E2eCommitments;
  /** Returns a new sealer for the answer. Each instance has a new response nonce, and therefore a new key. */
  answerSealer(): E2eAnswerSealer;
}

/**
 * Opens a sealed request as one recipient. The caller checks times, replay and the job's context.
 *
 * @throws {E2eError} Errors of {@link parseE2eRequest}, `wrong_recipient`, `bad_key`, `commitment_mismatch`, `open_failed`.
 */
export function openE2eRequest(crypto: E2eCrypto, bytes: Uint8Array, recipientIndex: number, keyPair: X25519KeyPair): OpenedE2eRequest {
  const { context, contextBytes, wrappedKeys, commitment, headerBytes } = parseE2eRequest(bytes);
  const own = wrappedKeys[recipientIndex];
  if (own === undefined || own.keyId !== keyIdFromKeyHash(crypto.sha256(keyPair.publicKey))) {
    throw new E2eError('wrong_recipient', `recipient ${recipientIndex} has another key`);
  }
  const contextHash = crypto.sha256(contextBytes);
  const recipient = setupBaseRecipient(crypto, keyPair, own.enc, concatBytes(INFO_PREFIX, contextHash));
  const dataKey = openOnly(crypto, recipient, EMPTY, own.wrappedKey);
  if (dataKey === null) throw new E2eError('open_failed', 'the data key does not open: other key or context, or altered');
  const { secret, commitment: expected } = requestSecret(crypto, contextHash, dataKey);
  dataKey.fill(0);
  if (!equalBytes(commitment, expected)) throw new E2eError('commitment_mismatch', 'the data key is not the committed one');
  const parts = openChunks(new E2eFrameOpener(crypto, secret), bytes.subarray(headerBytes));
  const { head, body } = requestParts(parts, context);
  return {
    context,
    contextSha256: toHex(contextHash),
    sealedRequestSha256: toHex(crypto.sha256(bytes)),
    enc: own.enc,
    head,
    body,
    commitments: new E2eCommitments(crypto, recipient),
    answerSealer: () => new E2eAnswerSealer(crypto, recipient, own.enc),
  };
}

function candidateOf(crypto: E2eCrypto, sender: HpkeContext, enc: Uint8Array): E2eCandidate {
  return { enc, commitments: new E2eCommitments(crypto, sender), answerOpener: () => new E2eAnswerOpener(crypto, sender, enc) };
}

function requireKeyId(crypto: E2eCrypto, { key_id, x25519 }: E2eRecipient): void {
  if (x25519.length !== X25519_BYTES || keyIdFromKeyHash(crypto.sha256(x25519)) !== key_id) {
    throw new E2eError('bad_key', `key ${key_id} is not the hash of its public key`);
  }
}

function requestSecret(
  crypto: E2eCrypto,
  contextHash: Uint8Array,
  dataKey: Uint8Array,
): { secret: E2eFrameSecret; commitment: Uint8Array } {
  const prk = hkdfExtract(crypto, contextHash, dataKey);
  return {
    secret: { key: hkdfExpandBlock(crypto, prk, 32, KEY_LABEL), baseNonce: hkdfExpandBlock(crypto, prk, 12, NONCE_LABEL) },
    commitment: hkdfExpandBlock(crypto, prk, COMMITMENT_BYTES, COMMIT_LABEL),
  };
}

function sealChunks(sealer: E2eFrameSealer, plaintext: Uint8Array): Uint8Array[] {
  const count = Math.ceil(plaintext.length / E2E_CHUNK_BYTES);
  return Array.from({ length: count }, (_, index) =>
    sealer.seal(plaintext.subarray(index * E2E_CHUNK_BYTES, (index + 1) * E2E_CHUNK_BYTES), index === count - 1),
  );
}

/** Opens frames that {@link parseE2eRequest} already validated. One `push` has all bytes, so each payload is a single piece. */
function openChunks(opener: E2eFrameOpener, frames: Uint8Array): Uint8Array {
  const chunks: Uint8Array[] = [];
  let flags = 0;
  let sealed: Uint8Array = EMPTY;
  const walker = new E2eFrameWalker('request', {
    onHeader: (value) => {
      flags = value;
    },
    onPayload: (piece) => {
      sealed = piece;
    },
    onEnd: () => chunks.push(opener.open(sealed, flags === E2E_FINAL)),
  });
  walker.push(frames);
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : concatBytes(...chunks);
}

function requestParts(plaintext: Uint8Array, context: E2eContext): { head: E2eRequestHead; body: Uint8Array } {
  const reader = new E2ePartReader({ head: MAX_E2E_REQUEST_HEAD_BYTES, body: MAX_E2E_VISION_BODY_BYTES });
  const parts = reader.push(plaintext);
  if (!reader.isBetweenParts) throw new E2eError('malformed', 'the plaintext ends inside a part');
  const [head, body] = parts as [E2ePart | undefined, E2ePart | undefined];
  if (parts.length !== 2 || head?.kind !== 'head' || body?.kind !== 'body')
    throw new E2eError('malformed', 'a request is one head and one body');
  if (body.bytes.length !== context.body_bytes) throw new E2eError('size_mismatch', 'the body does not have body_bytes bytes');
  const content = 3 * E2E_PART_HEADER_BYTES + head.bytes.length + body.bytes.length;
  if (!reader.endsWithOnlyPadding || plaintext.length !== paddedLength(content, 'padme'))
    throw new E2eError('malformed', 'the request is not padded as agreed');
  return { head: decodeHead(head.bytes), body: body.bytes };
}

function encodeHead(head: E2eRequestHead): Uint8Array {
  if (!headValidator().Check(head)) throw new E2eError('malformed', 'the head of the request is not valid');
  return canonicalJsonBytes(head);
}

function decodeHead(bytes: Uint8Array): E2eRequestHead {
  const head = parseCanonicalJson(bytes, 'head of the request');
  if (!headValidator().Check(head)) throw new E2eError('malformed', 'the head of the request is not valid');
  return head;
}

function uint16(value: number): Uint8Array {
  return Uint8Array.of(value >>> 8, value);
}
