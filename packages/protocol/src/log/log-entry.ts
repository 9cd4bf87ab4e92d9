/** Entries of the transparency log. Each is one published keyset, provider, revocation or release, as canonical JSON (RFC 8785). */
import Type, { type Static } from 'typebox';
import { fromUtf8, toHex } from '../bytes.js';
import { canonicalJson, canonicalJsonBytes } from '../canonical-json.js';
import { ProviderIdSchema, providerIdFromKeyHash, Sha256HexSchema } from '../ids.js';
import { lazyValidator } from '../lazy-validator.js';
import { RELEASE_PLATFORMS, ReleaseVersionSchema } from '../release.js';
import type { Sha256 } from './crypto.js';
import { LogFormatError } from './crypto.js';

const strict = { additionalProperties: false };

export const LogEntrySchema = Type.Union([
  Type.Object(
    {
      v: Type.Literal(1),
      kind: Type.Literal('keyset'),
      epoch: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
      /** SHA-256 of the keyset's canonical JSON without `log` (`keysetLeafBytes`). */
      sha256: Sha256HexSchema,
    },
    strict,
  ),
  Type.Object(
    {
      v: Type.Literal(1),
      kind: Type.Literal('provider'),
      provider_id: ProviderIdSchema,
      /** SHA-256 of the 65-byte x963 enclave public key. */
      public_key_sha256: Sha256HexSchema,
    },
    strict,
  ),
  Type.Object(
    {
      v: Type.Literal(1),
      kind: Type.Literal('revoked'),
      provider_id: ProviderIdSchema,
      /** Milliseconds since 1970. */
      since: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    },
    strict,
  ),
  Type.Object(
    {
      v: Type.Literal(1),
      kind: Type.Literal('release'),
      platform: Type.Enum([...RELEASE_PLATFORMS]),
      version: ReleaseVersionSchema,
      /** SHA-256 of the archive. */
      sha256: Sha256HexSchema,
    },
    strict,
  ),
]);
export type LogEntry = Static<typeof LogEntrySchema>;
export type LogEntryKind = LogEntry['kind'];

export const LOG_ENTRY_KINDS = ['keyset', 'provider', 'revoked', 'release'] as const satisfies readonly LogEntryKind[];

const check = lazyValidator(LogEntrySchema);

export function encodeLogEntry(entry: LogEntry): Uint8Array {
  return canonicalJsonBytes(entry);
}

/** Parses an entry. Throws LogFormatError on an unknown kind or non-canonical JSON. */
export function parseLogEntry(bytes: Uint8Array): LogEntry {
  let value: unknown;
  let text: string;
  try {
    text = fromUtf8(bytes);
    value = JSON.parse(text);
  } catch {
    throw new LogFormatError('the entry is not JSON');
  }
  if (!check().Check(value)) throw new LogFormatError('the entry is of no known kind');
  if (canonicalJson(value) !== text) throw new LogFormatError('the entry is not canonical JSON');
  return value;
}

/** Entry of a keyset. `keysetBytes`: result of `keysetLeafBytes`. */
export function keysetLogEntry(sha256: Sha256, epoch: number, keysetBytes: Uint8Array): LogEntry {
  return { v: 1, kind: 'keyset', epoch, sha256: toHex(sha256(keysetBytes)) };
}

/** Entry of a provider. `x963`: the 65-byte enclave public key. */
export function providerLogEntry(sha256: Sha256, x963: Uint8Array): LogEntry {
  const hash = sha256(x963);
  return { v: 1, kind: 'provider', provider_id: providerIdFromKeyHash(hash), public_key_sha256: toHex(hash) };
}
