/** Signs responses as an enclave does, and sends them as a coordinator does, with `node:crypto`. For tests of the verifier. */
import { createHash } from 'node:crypto';
import { canonicalJsonBytes, type JsonValue, statementBytes, toBase64, toBase64Url, utf8 } from '@inference/protocol';
import { type EnclaveKey, generateEnclaveKey, signDer } from '../../protocol/test/samples.js';
import type { ResponseProof } from '../src/response-proof.js';

export { type EnclaveKey, generateEnclaveKey, signDer };

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export const requestBody = utf8('{"model":"pico","messages":[{"role":"user","content":"hi"}]}');

export function receiptFor(key: EnclaveKey, responseSha256: string, changes: { readonly [member: string]: JsonValue } = {}): JsonValue {
  const keySha256 = sha256(key.x963);
  return {
    v: 1,
    job_id: '01234567-89ab-4cde-8f01-23456789abcd',
    provider_id: keySha256.slice(0, 32),
    se_key_sha256: keySha256,
    model: 'pico',
    endpoint: '/v1/chat/completions',
    request_sha256: sha256(requestBody),
    overrides: {},
    response_sha256: responseSha256,
    client_nonce: 'A'.repeat(43),
    usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    hidden_tokens: 0,
    finish_reason: 'stop',
    started_at: 1,
    completed_at: 2,
    ...changes,
  };
}

/** Signs the response bytes and their receipt. */
export function proofFor(key: EnclaveKey, signedBytes: Uint8Array, changes: { readonly [member: string]: JsonValue } = {}): ResponseProof {
  const responseHash = sha256(signedBytes);
  const receipt = canonicalJsonBytes(receiptFor(key, responseHash, changes));
  return {
    responseHash,
    signature: toBase64(signDer(key, utf8(responseHash))),
    receipt: toBase64Url(receipt),
    receiptSignature: toBase64(signDer(key, statementBytes('receipt', receipt))),
  };
}

/** Members common to all events of one stream. */
const ENVELOPE = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'pico' };

export function signatureEvent(proof: ResponseProof, extra: object = {}): string {
  const members = {
    ...ENVELOPE,
    choices: [],
    se_signature: proof.signature,
    response_hash: proof.responseHash,
    receipt: proof.receipt,
    receipt_signature: proof.receiptSignature,
    ...extra,
  };
  return `data: ${JSON.stringify(members)}\n\n`;
}

export function chunk(content: string): string {
  return `data: ${JSON.stringify({ ...ENVELOPE, choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
}
