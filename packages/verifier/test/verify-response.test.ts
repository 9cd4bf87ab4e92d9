import {
  fromBase64,
  fromBase64Url,
  type JsonValue,
  MAX_IMAGE_TOKENS,
  maxImagesIn,
  promptTokenBound,
  toBase64,
  toBase64Url,
  utf8,
} from '@inference/protocol';
import { describe, expect, test } from 'vitest';
import type { CheckName, ResponseVerdict } from '../src/checks.js';
import { sha256Hex } from '../src/digest.js';
import { verifyResponse, verifyStream } from '../src/verify-response.js';
import { generateEnclaveKey, proofFor, requestBody, sha256, signatureEvent, signDer } from './signed-answers.js';

const key = generateEnclaveKey();
const body = utf8('{"choices":[{"message":{"role":"assistant","content":"Grüße 😀"}}]}');
const proof = proofFor(key, body);
const expected = {
  requestSha256: sha256(requestBody),
  jobId: '01234567-89ab-4cde-8f01-23456789abcd',
  nonce: 'A'.repeat(43),
  model: 'pico',
};
const answer = { body, publicKey: key.x963, expected, ...proof };

function failed(verdict: ResponseVerdict): CheckName[] {
  const names = verdict.checks.filter((each) => each.result === 'failed').map((each) => each.name);
  expect(verdict.verified).toBe(names.length === 0);
  for (const each of verdict.checks) expect(each.explanation).toMatch(/^[A-Z].*\.$/);
  return names;
}

function flip(bytes: Uint8Array, at: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[at] = (copy[at] as number) ^ 1;
  return copy;
}

test('an unchanged answer passes every check, and returns its receipt', () => {
  const verdict = verifyResponse(answer);
  expect(failed(verdict)).toEqual([]);
  expect(verdict.checks.map((each) => each.name)).toEqual([
    'public_key',
    'response_hash',
    'response_signature',
    'receipt_signature',
    'receipt_key',
    'receipt_response',
    'receipt_finish',
    'receipt_request',
    'receipt_job',
    'receipt_nonce',
    'receipt_model',
  ]);
  expect(verdict.receipt?.usage.total_tokens).toBe(3);
  expect(sha256Hex(body)).toBe(proof.responseHash);
});

test('the key may be given in base64, and the proof in headers of either form', () => {
  const headers = {
    'X-Response-Hash': proof.responseHash,
    'X-Se-Signature': proof.signature,
    'X-Inference-Receipt': proof.receipt,
    'X-Inference-Receipt-Signature': [proof.receiptSignature],
  };
  expect(verifyResponse({ body, publicKey: toBase64(key.x963), headers }).verified).toBe(true);
  expect(
    verifyResponse({
      body,
      publicKey: key.x963,
      headers: new Headers({ ...headers, 'X-Inference-Receipt-Signature': proof.receiptSignature }),
    }).verified,
  ).toBe(true);
  expect(failed(verifyResponse({ body, publicKey: key.x963, headers: {} }))).toEqual([
    'response_hash',
    'response_signature',
    'receipt_signature',
  ]);
});

describe('fails', () => {
  test('for changed bytes all over the body', () => {
    for (let at = 0; at < body.length; at += 3) {
      expect(failed(verifyResponse({ ...answer, body: flip(body, at) }))).toEqual(['response_hash', 'receipt_response']);
    }
    expect(failed(verifyResponse({ ...answer, body: body.subarray(1) }))).toContain('response_hash');
  });

  test('for changed digits all over the hash', () => {
    for (let at = 0; at < 64; at += 5) {
      const digit = proof.responseHash[at] === '0' ? '1' : '0';
      const responseHash = proof.responseHash.slice(0, at) + digit + proof.responseHash.slice(at + 1);
      expect(failed(verifyResponse({ ...answer, responseHash }))).toEqual(['response_hash', 'response_signature']);
    }
  });

  test('for changed bytes all over the signature, and for other encodings of it', () => {
    const signature = fromBase64(proof.signature);
    for (let at = 0; at < signature.length; at += 3) {
      expect(failed(verifyResponse({ ...answer, signature: toBase64(flip(signature, at)) }))).toEqual(['response_signature']);
    }
    const ber = Uint8Array.from([0x30, 0x81, signature.length - 2, ...signature.subarray(2)]);
    for (const text of ['', '*', `${proof.signature}\n`, toBase64(ber), toBase64(Uint8Array.from([...signature, 0]))]) {
      expect(failed(verifyResponse({ ...answer, signature: text }))).toEqual(['response_signature']);
    }
  });

  test('for changed bytes all over the receipt and its signature', () => {
    const receipt = fromBase64Url(proof.receipt);
    for (let at = 0; at < receipt.length; at += 31) {
      expect(failed(verifyResponse({ ...answer, receipt: toBase64Url(flip(receipt, at)) }))).toEqual(['receipt_signature']);
    }
    const signature = fromBase64(proof.receiptSignature);
    for (let at = 0; at < signature.length; at += 5) {
      expect(failed(verifyResponse({ ...answer, receiptSignature: toBase64(flip(signature, at)) }))).toEqual(['receipt_signature']);
    }
    for (const text of ['', '*', `${proof.receipt}=`])
      expect(failed(verifyResponse({ ...answer, receipt: text }))).toEqual(['receipt_signature']);
    // A response signature is no receipt signature.
    expect(failed(verifyResponse({ ...answer, receiptSignature: proof.signature }))).toEqual(['receipt_signature']);
  });

  test('for another key, and for malformed ones', () => {
    expect(failed(verifyResponse({ ...answer, publicKey: generateEnclaveKey().x963 }))).toEqual([
      'response_signature',
      'receipt_signature',
    ]);
    const hybrid = Uint8Array.from([6 | ((key.x963[64] as number) & 1), ...key.x963.subarray(1)]);
    for (const publicKey of ['', 'A', hybrid, flip(key.x963, 64), key.x963.subarray(1), new Uint8Array(65)]) {
      expect(failed(verifyResponse({ ...answer, publicKey }))).toEqual(['public_key']);
    }
  });

  test.each<[CheckName, object]>([
    ['receipt_key', { se_key_sha256: '0'.repeat(64) }],
    ['receipt_key', { provider_id: '0'.repeat(32) }],
    ['receipt_response', { response_sha256: '0'.repeat(64) }],
    ['receipt_request', { request_sha256: '0'.repeat(64) }],
    ['receipt_job', { job_id: 'ffffffff-89ab-4cde-8f01-23456789abcd' }],
    ['receipt_nonce', { client_nonce: 'B'.repeat(43) }],
    ['receipt_model', { model: 'other' }],
    ['receipt_finish', { finish_reason: 'cancelled' }],
    ['receipt_signature', { finish_reason: 'bored' }],
    ['receipt_signature', { usage: {} }],
    ['receipt_signature', { v: 2 }],
  ])('%s for a signed receipt with %j', (name, changes) => {
    expect(failed(verifyResponse({ ...answer, ...proofFor(key, body, { ...changes }) }))).toEqual([name]);
  });

  test.each([
    ['the prompt', { usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 } }],
    ['the answer', { usage: { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 } }],
    ['hidden tokens', { hidden_tokens: 1 }],
    ['cached tokens', { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cached_tokens: 1 } }],
  ])('receipt_usage for a receipt that counts more of %s than the answer reports', (_, changes) => {
    const details = { prompt_tokens_details: { cached_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 0 } };
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, ...details };
    const reporting = utf8(JSON.stringify({ choices: [], usage }));
    const honest = { ...answer, body: reporting, ...proofFor(key, reporting) };
    expect(failed(verifyResponse(honest))).toEqual([]);
    expect(failed(verifyResponse({ ...honest, ...proofFor(key, reporting, changes) }))).toEqual(['receipt_usage']);
    const stream = utf8(`data: ${JSON.stringify({ choices: [], usage })}\n\n`);
    const whole = (proof: ReturnType<typeof proofFor>) => Buffer.concat([stream, Buffer.from(signatureEvent(proof))]);
    const event = (proof: ReturnType<typeof proofFor>) => verifyStream(whole(proof), { publicKey: key.x963 });
    expect(failed(event(proofFor(key, stream, changes)))).toContain('receipt_usage');
  });

  test.each([
    ['counts that do not add up', { usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 4 } }],
    ['more hidden tokens than tokens', { hidden_tokens: 3 }],
    ['more tokens than the answer can hold', { usage: { prompt_tokens: 1, completion_tokens: 5000, total_tokens: 5001 } }],
    ['more tokens than the request can hold', { usage: { prompt_tokens: 5000, completion_tokens: 2, total_tokens: 5002 } }],
  ])('receipt_usage for %s, whatever the answer reports', (_, changes) => {
    const known = { ...answer, expected: { ...expected, requestBytes: requestBody.length } };
    expect(failed(verifyResponse({ ...known, ...proofFor(key, body, changes) }))).toEqual(['receipt_usage']);
    expect(failed(verifyResponse(known))).toEqual([]);
  });

  test('receipt_usage only beyond the tokens of the images in the request', () => {
    const request = utf8(JSON.stringify({ messages: [{ content: [{ type: 'image', source: { data: 'AA==' } }] }] }));
    const requestImages = maxImagesIn(request);
    const known = { ...answer, expected: { ...expected, requestBytes: requestBody.length, requestImages } };
    const counting = (prompt_tokens: number) => {
      const counted = utf8(`{"usage":{"prompt_tokens":${prompt_tokens},"completion_tokens":2,"total_tokens":${prompt_tokens + 2}}}`);
      const usage = { prompt_tokens, completion_tokens: 2, total_tokens: prompt_tokens + 2 };
      return failed(verifyResponse({ ...known, body: counted, ...proofFor(key, counted, { usage }) }));
    };
    expect(requestImages).toBe(1);
    expect(counting(promptTokenBound(requestBody.length, MAX_IMAGE_TOKENS))).toEqual([]);
    expect(counting(promptTokenBound(requestBody.length, MAX_IMAGE_TOKENS) + 1)).toEqual(['receipt_usage']);
  });

  test('for a signature over anything but a hash', () => {
    const responseHash = 'inference/receipt/v1\0{}';
    const signature = toBase64(signDer(key, utf8(responseHash)));
    expect(failed(verifyResponse({ ...answer, responseHash, signature }))).toEqual(['response_hash', 'response_signature']);
  });
});

describe('a receipt of version 2', () => {
  const weights_sha256 = 'a'.repeat(64);
  const computed = { v: 2, engine: 'llama.cpp b1 cpu', weights_sha256, template_sha256: 'b'.repeat(64), sampling: { temperature: '0.7' } };
  const verdictFor = (changes: { readonly [member: string]: JsonValue }, weightsSha256?: string) =>
    verifyResponse({
      ...answer,
      ...proofFor(key, body, changes),
      expected: { ...expected, ...(weightsSha256 === undefined ? {} : { weightsSha256 }) },
    });

  test('names the computation, and its weights are compared', () => {
    expect(failed(verdictFor(computed))).toEqual([]);
    expect(verdictFor(computed).receipt).toMatchObject(computed);
    expect(failed(verdictFor(computed, weights_sha256))).toEqual([]);
    expect(failed(verdictFor(computed, 'c'.repeat(64)))).toEqual(['receipt_weights']);
    expect(failed(verdictFor({ v: 2, engine: 'x' }, weights_sha256))).toEqual(['receipt_weights']);
    expect(failed(verdictFor({}, weights_sha256))).toEqual(['receipt_weights']);
  });

  test.each<[string, { readonly [member: string]: JsonValue }]>([
    ['no engine', { v: 2, weights_sha256 }],
    ['its members in version 1', { ...computed, v: 1 }],
    ['a version of later', { ...computed, v: 3 }],
    ['a temperature that is a number', { ...computed, sampling: { temperature: 0.7 } }],
    ['no temperature', { ...computed, sampling: {} }],
  ])('is refused with %s', (_, changes) => {
    expect(failed(verdictFor(changes))).toEqual(['receipt_signature']);
  });
});

test('images are those of the receipt, all of them and in their order', () => {
  const [first, second] = [utf8('one image'), utf8('another')];
  const signed = proofFor(key, body, { image_sha256: [sha256(first), sha256(second)] });
  const verdictFor = (images: readonly Uint8Array[], proof = signed) =>
    failed(verifyResponse({ ...answer, ...proof, expected: { ...expected, images } }));
  expect(verdictFor([first, second])).toEqual([]);
  for (const others of [[], [first], [second, first], [first, second, second], [first, flip(second, 0)]]) {
    expect(verdictFor(others)).toEqual(['receipt_images']);
  }
  expect(verdictFor([first], proof)).toEqual(['receipt_images']);
  expect(verdictFor([], proof)).toEqual([]);
});
