/** Ids and other scalar types of the wire, with their schemas. Id types are branded, so that the compiler rejects mix-ups. */
import Type, { type Static } from 'typebox';
import { toHex } from './bytes.js';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** Lowercase UUID of one job. In HTTP, the header `X-Inference-Job-ID` of streams and `request_id` of usage entries. */
export type JobId = Branded<'JobId'>;
/** First 16 bytes of SHA-256 over the x963 enclave public key, as 32 hexadecimal digits. */
export type ProviderId = Branded<'ProviderId'>;
/** First 8 bytes of SHA-256 over an X25519 public key, as 16 hexadecimal digits. */
export type KeyId = Branded<'KeyId'>;

const uuid = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$';

export const JobIdSchema = Type.Unsafe<JobId>(Type.String({ pattern: uuid }));
export const PROVIDER_ID_PATTERN = '^[0-9a-f]{32}$';
export const ProviderIdSchema = Type.Unsafe<ProviderId>(Type.String({ pattern: PROVIDER_ID_PATTERN }));
export const KeyIdSchema = Type.Unsafe<KeyId>(Type.String({ pattern: '^[0-9a-f]{16}$' }));

/** Hexadecimal SHA-256. */
export const Sha256HexSchema = Type.String({ pattern: '^[0-9a-f]{64}$' });
/** Padded base64, at most 64 KiB of text. The schema does not check canonical form; decoders do. */
export const Base64Schema = Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$', maxLength: 65_536 });
/** Whole milliseconds since 1970-01-01T00:00:00Z. */
export const MillisecondsSchema = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** HTTP endpoints with signed responses, identified by path. */
export const EndpointSchema = Type.Union([
  Type.Literal('/v1/chat/completions'),
  Type.Literal('/v1/completions'),
  Type.Literal('/v1/responses'),
  Type.Literal('/v1/messages'),
  Type.Literal('/v1/messages/count_tokens'),
  Type.Literal('/v1/embeddings'),
  Type.Literal('/v1/images/generations'),
]);
export type Endpoint = Static<typeof EndpointSchema>;

/** Provider id of an enclave key, from the SHA-256 of the key's 65-byte x963 encoding. */
export function providerIdFromKeyHash(publicKeySha256: Uint8Array): ProviderId {
  return toHex(publicKeySha256.subarray(0, 16)) as ProviderId;
}

/** Key id of an X25519 key, from the SHA-256 of the key's 32 raw bytes. */
export function keyIdFromKeyHash(publicKeySha256: Uint8Array): KeyId {
  return toHex(publicKeySha256.subarray(0, 8)) as KeyId;
}
