/** Sample recipients, contexts and complete exchanges for tests of the end-to-end mode. */

import { expect } from 'vitest';
import { concatBytes, utf8 } from '../../src/bytes.js';
import { keyIdOf } from '../../src/crypto/digest.js';
import { e2eKeyPair, nodeE2eCrypto } from '../../src/crypto/e2e-crypto.js';
import { sealingKeyPairFrom } from '../../src/crypto/x25519.js';
import type { E2eAnswerOpener, E2eAnswerSealer } from '../../src/e2e/answer.js';
import { type E2eProof, encodeE2eAnswerHead } from '../../src/e2e/answer-json.js';
import type { X25519KeyPair } from '../../src/e2e/crypto.js';
import type { E2eErrorCode } from '../../src/e2e/error.js';
import type { E2ePart } from '../../src/e2e/parts.js';
import { type E2eRecipient, type E2eRequestTerms, openE2eRequest, type SealedE2eRequest, sealE2eRequest } from '../../src/e2e/request.js';
import type { ProviderId } from '../../src/ids.js';

export const terms: E2eRequestTerms = {
  endpoint: '/v1/chat/completions',
  model: 'pico',
  stream: true,
  max_tokens: 64,
  issued_at: 1_790_000_000_000,
  expires_at: 1_790_000_060_000,
  log: { size: 7, root: 'ab'.repeat(32) },
};

export const body = utf8('{"model":"pico","stream":true,"messages":[{"role":"user","content":"Hello"}]}');

export const proof: E2eProof = {
  response_hash: '12'.repeat(32),
  se_signature: 'c2lnbmVk',
  receipt: { payload: 'cmVjZWlwdA==', signature: 'c2lnbmVk' },
};

export interface Recipient extends E2eRecipient {
  readonly pair: X25519KeyPair;
}

/** `count` recipients with fixed keys. */
export function recipientsOf(count: number, first = 1): Recipient[] {
  return Array.from({ length: count }, (_, index) => {
    const pair = sealingKeyPairFrom(new Uint8Array(32).fill(first + index));
    return {
      provider_id: (first + index).toString(16).padStart(32, '0') as ProviderId,
      key_id: keyIdOf(pair.publicKey),
      x25519: pair.publicKey,
      pair: e2eKeyPair(pair),
    };
  });
}

export function sealTo(
  recipients: readonly Recipient[],
  text: Uint8Array = body,
  changes: Partial<E2eRequestTerms> = {},
): SealedE2eRequest {
  return sealE2eRequest(nodeE2eCrypto, {
    context: { ...terms, ...changes },
    recipients,
    head: { client_nonce: 'A'.repeat(43) },
    body: text,
  });
}

export function openAs(recipients: readonly Recipient[], bytes: Uint8Array, index: number) {
  return openE2eRequest(nodeE2eCrypto, bytes, index, (recipients[index] as Recipient).pair);
}

export const answerHead = { status: 200, content_type: 'text/event-stream' };

/** A streamed answer: pieces of the HTTP body and the hash for the receipt. */
export function sealAnswer(sealer: E2eAnswerSealer, bodies: readonly Uint8Array[]): { pieces: Uint8Array[]; sealedSha256: string } {
  const pieces = [sealer.start(), sealer.seal([encodeE2eAnswerHead(answerHead)], 'stream')];
  for (const bytes of bodies) pieces.push(sealer.seal([{ kind: 'body', bytes }], 'stream'));
  const sealedSha256 = sealer.sealedSha256();
  return { pieces: [...pieces, sealer.finish(proof)], sealedSha256 };
}

/** Parts of an answer, pushed in pieces. */
export function openAll(opener: E2eAnswerOpener, pieces: readonly Uint8Array[]): E2ePart[] {
  const parts = pieces.flatMap((piece) => opener.push(piece).parts);
  opener.end();
  return parts;
}

export function joined(parts: readonly E2ePart[], kind: E2ePart['kind']): Uint8Array {
  return concatBytes(...parts.filter((part) => part.kind === kind).map(({ bytes }) => bytes));
}

export function refuses(code: E2eErrorCode, act: () => unknown): void {
  expect(act).toThrow(expect.objectContaining({ name: 'E2eError', code }));
}
