import { describe, expect, test } from 'vitest';
import { verifyP256 } from '../../src/crypto/p256.js';
import { type E2eReceipt, e2eReceiptMismatch, e2eReceiptProblem, openE2eReceipt } from '../../src/statements/e2e-receipt.js';
import { generateEnclaveKey, jobContext, signStatement } from '../samples.js';

const hash = (digit: string): string => digit.repeat(64);

const receipt: E2eReceipt = {
  v: 1,
  job_id: jobContext.job_id,
  provider_id: jobContext.provider_id,
  se_key_sha256: hash('0'),
  model: 'pico',
  endpoint: '/v1/chat/completions',
  context_sha256: hash('1'),
  sealed_request_sha256: hash('2'),
  sealed_response_sha256: hash('3'),
  request_commitment: hash('4'),
  response_commitment: hash('5'),
  response_bytes: 100,
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
  hidden_tokens: 0,
  finish_reason: 'stop',
  started_at: 1,
  completed_at: 2,
  engine: 'llama.cpp b1 (metal)',
};

describe('an end-to-end receipt', () => {
  test('of a refusal has no usage, of any other job usage and engine', () => {
    const { usage: _, engine: __, ...bare } = receipt;
    expect(e2eReceiptProblem(receipt)).toBeNull();
    expect(e2eReceiptProblem({ ...bare, finish_reason: 'refused' })).toBeNull();
    expect(e2eReceiptProblem({ ...receipt, finish_reason: 'refused' })).toBe('/usage is no member of a refusal');
    expect(e2eReceiptProblem({ ...bare, finish_reason: 'refused', hidden_tokens: 1 })).toBe('/hidden_tokens of a refusal is not 0');
    expect(e2eReceiptProblem(bare)).toBe('/usage is missing');
    expect(e2eReceiptProblem({ ...bare, usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } })).toBe('/engine is missing');
  });

  test('opens under its own kind only', () => {
    const key = generateEnclaveKey();
    expect(openE2eReceipt(signStatement(key, 'e2e-receipt', receipt), key.x963, verifyP256).value).toEqual(receipt);
    const asReceipt = signStatement(key, 'receipt', receipt);
    expect(() => openE2eReceipt(asReceipt, key.x963, verifyP256)).toThrow(expect.objectContaining({ problem: 'bad_signature' }));
  });

  test('is compared with every expected member', () => {
    const expected = {
      job_id: receipt.job_id,
      provider_id: receipt.provider_id,
      model: receipt.model,
      endpoint: receipt.endpoint,
      context_sha256: receipt.context_sha256,
      sealed_request_sha256: receipt.sealed_request_sha256,
      sealed_response_sha256: receipt.sealed_response_sha256,
      request_commitment: receipt.request_commitment,
      response_bytes: 100,
    };
    expect(e2eReceiptMismatch(receipt, expected)).toBeNull();
    for (const member of Object.keys(expected) as (keyof typeof expected)[]) {
      expect(e2eReceiptMismatch({ ...receipt, [member]: hash('9') } as E2eReceipt, expected)).toBe(member);
    }
    expect(e2eReceiptMismatch(receipt, { ...expected, image_commitments: [hash('6')] })).toBe('image_commitments');
    const withImages = { ...receipt, image_commitments: [hash('6'), hash('7')] };
    expect(e2eReceiptMismatch(withImages, { ...expected, image_commitments: [hash('6'), hash('7')] })).toBeNull();
    expect(e2eReceiptMismatch(withImages, { ...expected, image_commitments: [hash('7'), hash('6')] })).toBe('image_commitments');
  });
});
