import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import { fromUtf8, toBase64 } from '../../src/bytes.js';
import { nodeE2eCrypto } from '../../src/crypto/e2e-crypto.js';
import { type E2eKeyset, E2eKeysetSchema, keysetLeafBytes, keysetPublicKey } from '../../src/e2e/keyset.js';
import { type Recipient, recipientsOf } from './samples.js';

const [recipient] = recipientsOf(1) as [Recipient];
const provider = {
  provider_id: recipient.provider_id,
  key_id: recipient.key_id,
  x25519: toBase64(recipient.x25519),
  not_after: 1_790_000_000_000,
  models: ['pico'],
  weight: 4,
  record_sha256: 'ab'.repeat(32),
  log_index: 3,
};
const keyset: E2eKeyset = {
  v: 1,
  epoch: 5,
  issued_at: 1_789_999_000_000,
  providers: [provider],
  log: { checkpoint: 'log.example/e2e\n8\nroot\n\n— sig\n', leaf_index: 7, inclusion_proof: [toBase64(new Uint8Array(32))] },
};

describe('a keyset', () => {
  test('has a leaf that its proof does not change', () => {
    const { log: _, ...rest } = keyset;
    expect(keysetLeafBytes(keyset)).toEqual(keysetLeafBytes(rest));
    expect(Object.keys(JSON.parse(fromUtf8(keysetLeafBytes(keyset))) as object)).toEqual(['epoch', 'issued_at', 'providers', 'v']);
    expect(keysetLeafBytes({ ...rest, epoch: 6 })).not.toEqual(keysetLeafBytes(rest));
  });

  test('yields a public key only when key_id is its hash', () => {
    expect(keysetPublicKey(nodeE2eCrypto, provider)).toEqual(recipient.x25519);
    expect(keysetPublicKey(nodeE2eCrypto, { ...provider, key_id: '00'.repeat(8) as typeof provider.key_id })).toBeNull();
    expect(keysetPublicKey(nodeE2eCrypto, { ...provider, x25519: toBase64(new Uint8Array(32)) })).toBeNull();
    expect(keysetPublicKey(nodeE2eCrypto, { ...provider, x25519: toBase64(recipient.x25519.subarray(1)) })).toBeNull();
    expect(keysetPublicKey(nodeE2eCrypto, { ...provider, x25519: 'A' })).toBeNull();
  });

  test('is valid without a log, and not with a weight of 0 or unknown versions', () => {
    const validator = Compile(E2eKeysetSchema);
    const { log: _, ...rest } = keyset;
    const { log_index: __, ...entry } = provider;
    for (const valid of [keyset, rest, { ...rest, providers: [entry] }, { ...rest, providers: [] }])
      expect(validator.Check(valid)).toBe(true);
    for (const invalid of [
      { ...rest, v: 2 },
      { ...rest, providers: [{ ...entry, weight: 0 }] },
      { ...rest, epoch: -1 },
    ]) {
      expect(validator.Check(invalid)).toBe(false);
    }
  });
});
