/** `E2eAnswerMeter`, for every division of the answer's bytes into chunks. */
import { expect, test } from 'vitest';
import { e2eKeyPair, generateSealingKeyPair, keyIdOf, nodeE2eCrypto } from '../../src/crypto/index.js';
import {
  concatBytes,
  E2eAnswerMeter,
  encodeE2eAnswerHead,
  openE2eRequest,
  type ProviderId,
  sealE2eRequest,
  utf8,
} from '../../src/index.js';

function sealedAnswer(): { readonly bytes: Uint8Array; readonly contentBytes: number; readonly sealedSha256: string } {
  const pair = generateSealingKeyPair();
  const recipient = { provider_id: 'a'.repeat(32) as ProviderId, key_id: keyIdOf(pair.publicKey), x25519: pair.publicKey };
  const terms = { endpoint: '/v1/chat/completions', model: 'm', stream: false, max_tokens: 1, issued_at: 1, expires_at: 2 } as const;
  const sealed = sealE2eRequest(nodeE2eCrypto, { context: terms, recipients: [recipient], body: utf8('{}') });
  const sealer = openE2eRequest(nodeE2eCrypto, sealed.bytes, 0, e2eKeyPair(pair)).answerSealer();
  const content = concatBytes(
    sealer.start(),
    sealer.seal([encodeE2eAnswerHead({ status: 200, content_type: 'application/json' }), { kind: 'body', bytes: utf8('{}') }], 'padme'),
  );
  const sealedSha256 = sealer.sealedSha256();
  const proof = { response_hash: '0'.repeat(64), se_signature: 'AAAA', receipt: { payload: 'AAAA', signature: 'AAAA' } };
  return { bytes: concatBytes(content, sealer.finish(proof)), contentBytes: content.length, sealedSha256 };
}

test.each([1, 7, 33, 4096])('a meter takes an answer in pieces of %i bytes, and nothing after it', (size) => {
  const { bytes, contentBytes, sealedSha256 } = sealedAnswer();
  const meter = new E2eAnswerMeter(nodeE2eCrypto);
  for (let at = 0; at < bytes.length; at += size) meter.push(bytes.subarray(at, at + size));
  meter.push(new Uint8Array());
  meter.end();
  expect([meter.contentBytes, meter.sealedSha256]).toEqual([contentBytes, sealedSha256]);
});
