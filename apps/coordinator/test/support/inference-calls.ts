/** A small request per streaming endpoint, and checks of response signatures that do not use the verifier package. */
import { createHash, verify } from 'node:crypto';
import { type Endpoint, fromBase64, fromBase64Url, type Receipt, utf8 } from '@inference/protocol';
import { p256PublicKeyPem } from '@inference/protocol/crypto';
import { expect } from 'vitest';
import { MODEL } from './harness.js';

export const messages = [{ role: 'user', content: 'hi' }];
export const BODIES = {
  '/v1/chat/completions': { model: MODEL, messages },
  '/v1/completions': { model: MODEL, prompt: 'hi' },
  '/v1/responses': { model: MODEL, input: 'hi' },
  '/v1/messages': { model: MODEL, messages, max_tokens: 64 },
} as const;
export type Streaming = keyof typeof BODIES;
/** Endpoints with streaming. */
export const STREAMING = Object.keys(BODIES) as Streaming[];

/** Verifies the enclave's signature over the hex digits of the SHA-256 of these bytes. */
function expectSigned(response: Response, signed: string | Buffer, said: { hash: string; signature: string }): void {
  const hash = createHash('sha256').update(signed).digest('hex');
  const key = p256PublicKeyPem(fromBase64(response.headers.get('x-attestation-se-public-key') ?? ''));
  expect(said.hash).toBe(hash);
  expect(verify('sha256', utf8(hash), key, fromBase64(said.signature))).toBe(true);
}

/** Verifies a whole response and its receipt. */
export async function expectSignedPlain(
  response: Response,
  endpoint: Endpoint,
): Promise<{ answer: Record<string, unknown>; receipt: Receipt }> {
  const body = Buffer.from(await response.arrayBuffer());
  expect(response.status).toBe(200);
  const header = (name: string): string => response.headers.get(name) ?? '';
  expectSigned(response, body, { hash: header('x-response-hash'), signature: header('x-se-signature') });
  const receipt = JSON.parse(Buffer.from(fromBase64Url(header('x-inference-receipt'))).toString()) as Receipt;
  expect(receipt.endpoint).toBe(endpoint);
  return { answer: JSON.parse(body.toString()), receipt };
}

/** Splits a stream at its signature, in either form, and verifies it. Returns the signed bytes and the rest. */
export async function expectSignedStream(response: Response): Promise<{ signed: string; end: string }> {
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(response.headers.get('x-inference-job-id')).toMatch(/^[0-9a-f-]{36}$/);
  const text = await response.text();
  const blocks = text.split(/(?<=\n\n)/);
  const at = blocks.findIndex((block) => block.includes('"se_signature"'));
  expect(at).toBeGreaterThan(0);
  const signature = JSON.parse((blocks[at] ?? '').replace(/^(data:|: inference-signature) /, ''));
  const signed = blocks.slice(0, at).filter((block) => !block.startsWith(':'));
  expectSigned(response, signed.join(''), { hash: signature.response_hash, signature: signature.se_signature });
  return { signed: signed.join(''), end: blocks.slice(at + 1).join('') };
}
