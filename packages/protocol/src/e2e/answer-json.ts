/** JSON schemas and codecs of sealed answers (end-to-end mode): head part, proof part, and the coordinator's abort frame. */
import Type, { type Static } from 'typebox';
import { canonicalJsonBytes, type JsonValue } from '../canonical-json.js';
import { Base64Schema, Sha256HexSchema } from '../ids.js';
import { lazyValidator } from '../lazy-validator.js';
import { SignedStatementSchema } from '../statements/signed-statement.js';
import { E2eError } from './error.js';
import { E2E_ABORT, encodeE2eFrame } from './frames.js';
import { parseCanonicalJson } from './json.js';
import { MAX_E2E_ABORT_BYTES, MAX_E2E_CHECKPOINT_LENGTH, MAX_E2E_PROOF_BYTES } from './limits.js';
import type { E2ePart } from './parts.js';

/** Head part of an answer: HTTP status and headers, as in plain mode, and the provider's log checkpoint. */
export const E2eAnswerHeadSchema = Type.Object({
  status: Type.Integer({ minimum: 200, maximum: 599 }),
  content_type: Type.String({ pattern: '^[\\x20-\\x7e]{1,128}$' }),
  /** Signed note (C2SP tlog-checkpoint): the newest checkpoint of the transparency log that the provider verified. */
  log_checkpoint: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_E2E_CHECKPOINT_LENGTH })),
  /** Lowercase names. */
  headers: Type.Optional(
    Type.Record(Type.String({ pattern: '^[a-z0-9-]{1,64}$' }), Type.String({ pattern: '^[\\x20-\\x7e]{0,1024}$' }), { maxProperties: 32 }),
  ),
});
export type E2eAnswerHead = Static<typeof E2eAnswerHeadSchema>;

/** Proof part: the provider's signatures over the answer, and the receipt. */
export const E2eProofSchema = Type.Object({
  /** Lowercase hex SHA-256 of the joined body parts. */
  response_hash: Sha256HexSchema,
  /** base64 strict-DER signature over the 64 ASCII digits of `response_hash`. */
  se_signature: Base64Schema,
  /** Statement of kind `e2e-receipt`. */
  receipt: SignedStatementSchema,
});
export type E2eProof = Static<typeof E2eProofSchema>;

/** Payload of an abort frame: a statement of the coordinator, unauthenticated. */
export const E2eAbortSchema = Type.Object({
  /** HTTP status of the error in plain mode. */
  status: Type.Integer({ minimum: 400, maximum: 599 }),
  code: Type.String({ pattern: '^[a-z0-9_]{1,64}$' }),
  message: Type.String({ maxLength: 512 }),
});
export type E2eAbort = Static<typeof E2eAbortSchema>;

const headValidator = lazyValidator(E2eAnswerHeadSchema);
const proofValidator = lazyValidator(E2eProofSchema);
const abortValidator = lazyValidator(E2eAbortSchema);

const KEEP_ALIVE = Object.freeze([0, 0, 0, 0]);

/** Zero-length frame that keeps the connection alive. Allowed between frames. */
export function e2eKeepAlive(): Uint8Array {
  return Uint8Array.from(KEEP_ALIVE);
}

/** Encodes an abort frame, with which the coordinator ends an answer. Throws E2eError `malformed`, `too_large`. */
export function encodeE2eAbort(abort: E2eAbort): Uint8Array {
  if (!abortValidator().Check(abort)) throw new E2eError('malformed', 'the abort is not valid');
  const json = canonicalJsonBytes(abort);
  if (json.length > MAX_E2E_ABORT_BYTES) throw new E2eError('too_large', 'the abort is over the cap');
  return encodeE2eFrame(E2E_ABORT, json);
}

/** Encodes a head part as canonical JSON. Throws E2eError `malformed`. */
export function encodeE2eAnswerHead(head: E2eAnswerHead): E2ePart {
  if (!headValidator().Check(head)) throw new E2eError('malformed', 'the head of the answer is not valid');
  return { kind: 'head', bytes: canonicalJsonBytes(head as JsonValue) };
}

/** Reads a head part. Throws E2eError `malformed`. */
export function parseE2eAnswerHead(bytes: Uint8Array): E2eAnswerHead {
  const head = parseCanonicalJson(bytes, 'head of the answer');
  if (!headValidator().Check(head)) throw new E2eError('malformed', 'the head of the answer is not valid');
  return head;
}

/** Reads a proof part. Throws E2eError `malformed`. */
export function parseE2eProof(bytes: Uint8Array): E2eProof {
  const proof = parseCanonicalJson(bytes, 'proof of the answer');
  if (!proofValidator().Check(proof)) throw new E2eError('malformed', 'the proof of the answer is not valid');
  return proof;
}

/** Encodes a proof part as canonical JSON. Throws E2eError `malformed`, `too_large`. */
export function encodeE2eProof(proof: E2eProof): E2ePart {
  if (!proofValidator().Check(proof)) throw new E2eError('malformed', 'the proof of the answer is not valid');
  const bytes = canonicalJsonBytes(proof);
  if (bytes.length > MAX_E2E_PROOF_BYTES) throw new E2eError('too_large', 'the proof is over the cap');
  return { kind: 'proof', bytes };
}

/** Reads the payload of an abort frame. Throws E2eError `malformed`. */
export function parseE2eAbort(bytes: Uint8Array): E2eAbort {
  const abort = parseCanonicalJson(bytes, 'abort');
  if (!abortValidator().Check(abort)) throw new E2eError('malformed', 'the abort is not valid');
  return abort;
}
