/** Verifies an answer: stated hash of the bytes, signature of the hash, the receipt, and that the body is a JSON object. */
import { BodyCheck, fromBase64, utf8 } from '@inference/protocol';
import { allOk, type Check, check, type ResponseVerdict } from './checks.js';
import { sha256Hex } from './digest.js';
import { enclaveKeyBytes, verifyP256InBrowser } from './p256.js';
import { type Expected, receiptChecks } from './receipt-checks.js';
import { type HeaderSource, proofFromHeaders, type ResponseProof } from './response-proof.js';
import { splitSignedStream } from './signed-stream.js';
import type { SignedAnswer } from './usage-check.js';

export interface TrustedKey {
  /** Enclave key from a trusted source: 65 bytes x963, or base64 as in `se_public_key`. */
  readonly publicKey: Uint8Array | string;
  /** Facts of the request that the receipt must state. */
  readonly expected?: Expected;
}

/** A plain answer: its exact body bytes, and its headers or their parsed proof. */
export type PlainAnswer = TrustedKey & { readonly body: Uint8Array } & ({ readonly headers: HeaderSource } | ResponseProof);

/** Verifies a plain answer. Never throws for an invalid answer: each defect is a failed check. */
export function verifyResponse(answer: PlainAnswer): ResponseVerdict {
  const proof = 'headers' in answer ? proofFromHeaders(answer.headers) : answer;
  return verdict([], { bytes: answer.body, stream: false }, proof, answer);
}

/** Checks the content of signed bytes. `splitSignedStream` checks that of streams. */
function contentChecks({ bytes, stream }: SignedAnswer): readonly Check[] {
  const json = new BodyCheck(null);
  if (stream || (json.accepts(bytes) && json.isComplete)) return [];
  return [check('response_body', false, '', 'The signed body is not a JSON object, or has an error in place of an answer.')];
}

/** Verifies a streamed answer of any format, given its exact body bytes. Never throws for an invalid answer. */
export function verifyStream(body: Uint8Array, trusted: TrustedKey): ResponseVerdict {
  const stream = splitSignedStream(body);
  if (stream.kind === 'refused') {
    return { verified: false, checks: [check('signature_event', false, '', stream.reason)], receipt: null };
  }
  const event = check(
    'signature_event',
    stream.sameEnvelope,
    'The stream ends with one signature event.',
    'The signature event names another answer or another model than the events before it.',
  );
  return verdict([event], { bytes: stream.signedBytes, stream: true }, stream.proof, trusted);
}

function verdict(before: readonly Check[], answer: SignedAnswer, proof: ResponseProof, trusted: TrustedKey): ResponseVerdict {
  const key = enclaveKeyBytes(trusted.publicKey);
  if (key === null) {
    const malformed = check('public_key', false, '', 'The public key is not base64 of an uncompressed P-256 point.');
    return { verified: false, checks: [...before, malformed], receipt: null };
  }
  const responseSha256 = sha256Hex(answer.bytes);
  const receipt = receiptChecks(proof, key, { ...answer, sha256: responseSha256 }, trusted.expected ?? {});
  const isSigned = proof.responseHash === responseSha256;
  const checks = [
    ...before,
    check('public_key', true, 'The public key is a point of P-256.', ''),
    check(
      'response_hash',
      isSigned,
      'The stated hash is the SHA-256 of the signed bytes.',
      'The bytes received are not the bytes that the stated hash was made of.',
    ),
    check(
      'response_signature',
      signatureVerifies(key, proof),
      'The enclave key signed the stated hash.',
      'The enclave key did not sign the stated hash.',
    ),
    ...(isSigned ? contentChecks(answer) : []),
    ...receipt.checks,
  ];
  return { verified: allOk(checks), checks, receipt: receipt.receipt };
}

function signatureVerifies(key: Uint8Array, proof: ResponseProof): boolean {
  // Only 64 digits: no other signed statement of an enclave has this shape, so none can pass as a response.
  if (!/^[0-9a-f]{64}$/.test(proof.responseHash)) return false;
  try {
    return verifyP256InBrowser(key, utf8(proof.responseHash), fromBase64(proof.signature));
  } catch {
    return false;
  }
}
