/** Nonces and freshness codes that bind a certificate chain to an enclave key. Anyone can recompute them from the published preimage. */
import { createHash } from 'node:crypto';
import { fromBase64OrNull, type NoncePreimage, toBase64, utf8 } from '@inference/protocol';

const WEEK_MS = 7 * 24 * 60 * 60_000;
const PREFIX = utf8('inference/mda/v1\0');
const RANDOM_BYTES = 16;

/** Week number since 1970-01-01. A device issues a new certificate about once a week. */
export function weeklyEpoch(milliseconds: number): number {
  return Math.floor(milliseconds / WEEK_MS);
}

/** Preimage of a new nonce. `publicKey`: the enclave key as 65-byte x963. `random`: 16 bytes. */
export function noncePreimage(publicKey: Uint8Array, epoch: number, random: Uint8Array): NoncePreimage {
  if (publicKey.length !== 65 || random.length !== RANDOM_BYTES)
    throw new RangeError('a nonce is made of a 65-byte key and 16 random bytes');
  return { se_public_key: toBase64(publicKey), epoch, random: toBase64(random) };
}

/** The 32-byte nonce: `SHA-256("inference/mda/v1" 0x00 ‖ x963 key ‖ u64be(epoch) ‖ 16 random bytes)`. Null if the preimage is malformed. */
export function deviceNonce(preimage: NoncePreimage): Uint8Array | null {
  const [key, random] = [fromBase64OrNull(preimage.se_public_key), fromBase64OrNull(preimage.random)];
  if (key?.length !== 65 || random?.length !== RANDOM_BYTES || !Number.isSafeInteger(preimage.epoch) || preimage.epoch < 0) return null;
  const epoch = Buffer.alloc(8);
  epoch.writeBigUInt64BE(BigInt(preimage.epoch));
  return new Uint8Array(createHash('sha256').update(PREFIX).update(key).update(epoch).update(random).digest());
}

/** Freshness code of an ACME order: SHA-256 of the challenge token. Null if the token is empty. */
export function acmeFreshness(token: string): Uint8Array | null {
  return token === '' ? null : new Uint8Array(createHash('sha256').update(token, 'ascii').digest());
}
