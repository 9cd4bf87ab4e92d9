/** Valid sample values for tests, and keys for signing and sealing. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { toBase64, utf8 } from '../src/bytes.js';
import { canonicalJsonBytes, type JsonValue } from '../src/canonical-json.js';
import { sha256Hex } from '../src/crypto/digest.js';
import type { JobId, KeyId, ProviderId } from '../src/ids.js';
import type { JobContext } from '../src/job-context.js';
import { type SignedStatement, type StatementKind, statementBytes } from '../src/statements/signed-statement.js';

export const jobContext: JobContext = {
  v: 1,
  job_id: '01234567-89ab-4cde-8f01-23456789abcd' as JobId,
  provider_id: '00112233445566778899aabbccddeeff' as ProviderId,
  key_id: '0011223344556677' as KeyId,
  endpoint: '/v1/chat/completions',
  model: 'pico',
  stream: true,
  max_tokens: 64,
  overrides: { max_tokens: 8192 },
  response_id: 'chatcmpl-1',
  created: 1_790_000_000,
  request_sha256: sha256Hex(utf8('{}')),
  client_nonce: 'A'.repeat(43),
  issued_at: 1_790_000_000_000,
  expires_at: 1_790_000_060_000,
};

/** P-256 key in the role of an enclave key. */
export interface EnclaveKey {
  readonly x963: Uint8Array;
  readonly privateKey: KeyObject;
}

export function generateEnclaveKey(): EnclaveKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { x963: new Uint8Array(publicKey.export({ format: 'der', type: 'spki' }).subarray(-65)), privateKey };
}

/** Strict-DER ECDSA P-256 SHA-256. */
export function signDer(key: EnclaveKey, message: Uint8Array): Uint8Array {
  return new Uint8Array(sign('sha256', message, key.privateKey));
}

export function signStatement(key: EnclaveKey, kind: StatementKind, value: JsonValue): SignedStatement {
  return signPayload(key, kind, canonicalJsonBytes(value));
}

export function signPayload(key: EnclaveKey, kind: StatementKind, payload: Uint8Array): SignedStatement {
  return { payload: toBase64(payload), signature: toBase64(signDer(key, statementBytes(kind, payload))) };
}
