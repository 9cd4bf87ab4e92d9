import { canonicalJsonBytes, type JsonValue, statementBytes, toBase64, toBase64Url, utf8 } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { providerNamedBy, ReceiptError, readSavedReceipt, type SavedReceipt, verifyReceipt, verifyReceiptInFeed } from '../src/index.js';
import { feedOf, hardwareRecord, NOW, selfSignedRecord } from './published-record.js';
import { type EnclaveKey, generateEnclaveKey, receiptFor, sha256, signDer } from './signed-answers.js';

const key = generateEnclaveKey();
const RESPONSE = sha256(utf8('the response'));

/** The answer of `GET /v1/receipts/{job_id}` for these claims. */
function savedOf(kind: 'receipt' | 'e2e-receipt', claims: JsonValue, signer: EnclaveKey = key): SavedReceipt {
  const bytes = canonicalJsonBytes(claims);
  return {
    receipt: toBase64Url(bytes),
    receipt_signature: toBase64(signDer(signer, statementBytes(kind, bytes))),
    response_hash: RESPONSE,
    se_signature: toBase64(signDer(signer, utf8(RESPONSE))),
    claims,
  };
}

const plain = savedOf('receipt', receiptFor(key, RESPONSE));
const sealed = savedOf('e2e-receipt', {
  v: 1,
  job_id: '01234567-89ab-4cde-8f01-23456789abcd',
  provider_id: sha256(key.x963).slice(0, 32),
  se_key_sha256: sha256(key.x963),
  model: 'pico',
  endpoint: '/v1/chat/completions',
  context_sha256: sha256(utf8('context')),
  sealed_request_sha256: sha256(utf8('request')),
  sealed_response_sha256: RESPONSE,
  request_commitment: 'a'.repeat(64),
  response_commitment: 'b'.repeat(64),
  response_bytes: 12,
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
  hidden_tokens: 0,
  finish_reason: 'stop',
  started_at: 1,
  completed_at: 2,
  engine: 'llama.cpp/b1',
});

function failedChecks(saved: SavedReceipt, publicKey: Uint8Array | string = key.x963): string[] {
  return verifyReceipt(saved, publicKey)
    .checks.filter(({ result }) => result === 'failed')
    .map(({ name }) => name);
}

describe('a saved receipt', () => {
  it('of each mode verifies by the key that signed it', () => {
    expect(verifyReceipt(plain, key.x963)).toMatchObject({ verified: true, claims: { mode: 'plain', receipt: { model: 'pico' } } });
    expect(verifyReceipt(sealed, toBase64(key.x963))).toMatchObject({
      verified: true,
      claims: { mode: 'end_to_end', receipt: { sealed_response_sha256: RESPONSE } },
    });
    expect(verifyReceipt(plain, key.x963).checks.map(({ name }) => name)).toEqual([
      'receipt_signature',
      'receipt_key',
      'receipt_response',
      'response_signature',
      'receipt_claims',
    ]);
  });

  it.each([
    ['another key', plain, generateEnclaveKey().x963, ['receipt_signature']],
    ['a malformed key', plain, 'AAAA', ['public_key']],
    ['a receipt of another provider', savedOf('receipt', receiptFor(generateEnclaveKey(), RESPONSE)), key.x963, ['receipt_key']],
    ['another stated hash', { ...plain, response_hash: 'f'.repeat(64) }, key.x963, ['receipt_response']],
    ['no text as stated hash', { ...plain, response_hash: null }, key.x963, ['receipt_response']],
    ['another signature of the hash', { ...plain, se_signature: sealed.receipt_signature }, key.x963, ['response_signature']],
    ['a malformed signature of the hash', { ...plain, se_signature: '%' }, key.x963, ['response_signature']],
    [
      'other readable claims',
      { ...plain, claims: { ...(receiptFor(key, RESPONSE) as object), model: 'huge' } },
      key.x963,
      ['receipt_claims'],
    ],
    ['a receipt signed as the other kind', savedOf('e2e-receipt', receiptFor(key, RESPONSE)), key.x963, ['receipt_signature']],
    ['a receipt that is not base64url', { ...plain, receipt: '+/' }, key.x963, ['receipt_signature']],
  ] as const)('fails with %s', (_, saved, publicKey, expected) => {
    expect(failedChecks(saved, publicKey)).toEqual(expected);
    expect(verifyReceipt(saved, publicKey).verified).toBe(false);
  });

  it('is checked as far as its members allow', () => {
    const { receipt, receipt_signature } = plain;
    expect(verifyReceipt({ receipt, receipt_signature }, key.x963).checks.map(({ name }) => name)).toEqual([
      'receipt_signature',
      'receipt_key',
    ]);
  });

  it('verifies with the record of its provider', () => {
    const record = selfSignedRecord({ key });
    expect(verifyReceiptInFeed(plain, feedOf(hardwareRecord(), record), NOW)).toMatchObject({
      verified: true,
      published: { provider_id: record.provider_id },
      record: { consistent: true },
    });
    expect(verifyReceiptInFeed(plain, feedOf({ ...record, memory_gb: 512 }), NOW)).toMatchObject({
      verified: false,
      claims: { mode: 'plain' },
      record: { consistent: false },
    });
    expect(verifyReceiptInFeed(plain, feedOf(hardwareRecord()), NOW)).toMatchObject({ verified: false, claims: null, published: null });
  });

  it('that is malformed is refused with the name of its member', () => {
    expect(() => readSavedReceipt({ receipt_signature: 'x' })).toThrow(new ReceiptError('/receipt is missing or is not a text.'));
    expect(() => readSavedReceipt({ receipt: 'x', receipt_signature: 1 })).toThrow('/receipt_signature is missing');
    expect(() => readSavedReceipt(null)).toThrow(ReceiptError);
    expect(() => providerNamedBy({ ...plain, receipt: 'bm90IGpzb24' })).toThrow('/receipt is not base64url of JSON');
    expect(() => providerNamedBy({ ...plain, receipt: toBase64Url(utf8('null')) })).toThrow('names no provider_id');
    expect(providerNamedBy(sealed)).toBe(sha256(key.x963).slice(0, 32));
  });
});
