/**
 * Keyset, the response of `GET /v1/e2e/keyset`: the sealing keys of all providers that serve sealed requests.
 *
 * Every client must get the same bytes. Clients compare downloads and the transparency log, because the coordinator could give one
 * client special keys.
 */
import Type, { type Static } from 'typebox';
import { fromBase64OrNull } from '../bytes.js';
import { canonicalJsonBytes } from '../canonical-json.js';
import { Base64Schema, KeyIdSchema, keyIdFromKeyHash, MillisecondsSchema, ProviderIdSchema, Sha256HexSchema } from '../ids.js';
import type { E2eCrypto } from './crypto.js';

export const MAX_KEYSET_PROVIDERS = 4096;

const LogIndexSchema = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export const E2eKeysetProviderSchema = Type.Object({
  provider_id: ProviderIdSchema,
  key_id: KeyIdSchema,
  /** base64 of the 32-byte X25519 public key. */
  x25519: Base64Schema,
  /** Expiry of the key, in milliseconds. */
  not_after: MillisecondsSchema,
  models: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: 64 }),
  /** Number of concurrent jobs. Clients choose candidates at random with this weight. */
  weight: Type.Integer({ minimum: 1, maximum: 1024 }),
  /** SHA-256 of the canonical JSON of the provider's attestation record. */
  record_sha256: Sha256HexSchema,
  /** Index of the provider's first leaf in the transparency log. Absent: the coordinator has no log. */
  log_index: Type.Optional(LogIndexSchema),
});
export type E2eKeysetProvider = Static<typeof E2eKeysetProviderSchema>;

/** Proof that the transparency log contains the keyset. */
export const E2eKeysetLogSchema = Type.Object({
  /** Signed note (C2SP tlog-checkpoint) with its cosignatures. */
  checkpoint: Type.String({ minLength: 1, maxLength: 16_384 }),
  /** Index of the leaf `keyset{epoch, sha256}`. */
  leaf_index: LogIndexSchema,
  /** base64 of the 32-byte hashes of the inclusion proof (RFC 6962 section 2.1.1), lowest first. */
  inclusion_proof: Type.Array(Base64Schema, { maxItems: 64 }),
});
export type E2eKeysetLog = Static<typeof E2eKeysetLogSchema>;

export const E2eKeysetSchema = Type.Object({
  v: Type.Literal(1),
  /** Increases with every published keyset. Numbers may be skipped, but are never reused. */
  epoch: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  issued_at: MillisecondsSchema,
  /** Sorted by `provider_id`. */
  providers: Type.Array(E2eKeysetProviderSchema, { maxItems: MAX_KEYSET_PROVIDERS }),
  /** Absent: the coordinator has no log. */
  log: Type.Optional(E2eKeysetLogSchema),
});
export type E2eKeyset = Static<typeof E2eKeysetSchema>;

/** Bytes whose hash the log entry contains: canonical JSON of the keyset without `log`. */
export function keysetLeafBytes({ v, epoch, issued_at, providers }: Omit<E2eKeyset, 'log'>): Uint8Array {
  return canonicalJsonBytes({ v, epoch, issued_at, providers });
}

/** Public key of a keyset entry; null if it is not 32 bytes or does not match `key_id`. */
export function keysetPublicKey(
  crypto: Pick<E2eCrypto, 'sha256'>,
  provider: Pick<E2eKeysetProvider, 'key_id' | 'x25519'>,
): Uint8Array | null {
  const key = fromBase64OrNull(provider.x25519);
  return key?.length === 32 && keyIdFromKeyHash(crypto.sha256(key)) === provider.key_id ? key : null;
}
