/** Valid requests to a helper, and signature checks with node:crypto, independent of the packages under test. */
import { createPublicKey, randomBytes, randomUUID, verify } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { VerifyP256 } from '@inference/protocol';
import type { E2eReceiptDraft, ReceiptDraft } from '../src/contract/requests.js';

export function nonce(): string {
  return randomBytes(32).toString('base64');
}

export function keyRequest(notBefore = Date.now()) {
  return {
    x25519_public_key: randomBytes(32).toString('base64'),
    not_before: notBefore,
    not_after: notBefore + 3_600_000,
    attestation_sha256: 'a'.repeat(64),
  };
}

export function receiptDraft(changes: object = {}): ReceiptDraft {
  const draft = {
    v: 1,
    job_id: randomUUID(),
    model: 'tiny-model',
    endpoint: '/v1/chat/completions',
    request_sha256: 'b'.repeat(64),
    overrides: { max_tokens: 8_192 },
    response_sha256: randomBytes(32).toString('hex'),
    client_nonce: randomBytes(32).toString('base64url'),
    usage: { prompt_tokens: 11, completion_tokens: 22, total_tokens: 33 },
    hidden_tokens: 3,
    finish_reason: 'stop',
    started_at: 1_700_000_000_000,
    completed_at: 1_700_000_001_000,
  };
  return { ...draft, ...changes } as ReceiptDraft;
}

export function e2eReceiptDraft(changes: object = {}): E2eReceiptDraft {
  const draft = {
    v: 1,
    job_id: randomUUID(),
    model: 'tiny-model',
    endpoint: '/v1/chat/completions',
    context_sha256: 'a'.repeat(64),
    sealed_request_sha256: 'b'.repeat(64),
    sealed_response_sha256: randomBytes(32).toString('hex'),
    request_commitment: 'c'.repeat(64),
    response_commitment: 'd'.repeat(64),
    response_bytes: 512,
    usage: { prompt_tokens: 11, completion_tokens: 22, total_tokens: 33 },
    hidden_tokens: 3,
    finish_reason: 'stop',
    started_at: 1_700_000_000_000,
    completed_at: 1_700_000_001_000,
    engine: 'llama.cpp b1 cpu',
  };
  return { ...draft, ...changes } as E2eReceiptDraft;
}

const spkiPrefix = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex');

export const verifyP256: VerifyP256 = (publicKey, message, signature) => {
  const key = createPublicKey({ key: Buffer.concat([spkiPrefix, publicKey]), format: 'der', type: 'spki' });
  return verify('sha256', message, { key, dsaEncoding: 'der' }, signature);
};

export function makeDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'enclave-test-'));
}

export function removeDirectory(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true });
}

/** Runs with a temporary directory. */
export async function withDirectory<T>(use: (path: string) => Promise<T>): Promise<T> {
  const path = await makeDirectory();
  try {
    return await use(path);
  } finally {
    await removeDirectory(path);
  }
}
