/**
 * Response signature: ECDSA by the enclave key over the 64 ASCII hex digits of SHA-256(response bytes).
 *
 * Clients can verify this form with openssl alone.
 */
import { createHash } from 'node:crypto';
import { utf8 } from '../bytes.js';
import { verifyP256, verifyP256Async } from './p256.js';

/** Incremental response hash: SHA-256 of the signed response bytes. `digestHex` finishes the hash and returns 64 lowercase digits. */
export interface ResponseHash {
  update(bytes: Uint8Array): void;
  digestHex(): string;
}

export function responseHash(): ResponseHash {
  const hash = createHash('sha256');
  return { update: (bytes) => void hash.update(bytes), digestHex: () => hash.digest('hex') };
}

/** Verifies an enclave's signature over the hexadecimal response hash. Returns false on malformed input; never throws. */
export function verifyResponseSignature(publicKeyX963: Uint8Array, responseSha256Hex: string, signatureDer: Uint8Array): boolean {
  return isResponseHash(responseSha256Hex) && verifyP256(publicKeyX963, utf8(responseSha256Hex), signatureDer);
}

/** Like {@link verifyResponseSignature}, but on the thread pool. Never rejects. */
export async function verifyResponseSignatureAsync(
  publicKeyX963: Uint8Array,
  responseSha256Hex: string,
  signatureDer: Uint8Array,
): Promise<boolean> {
  return isResponseHash(responseSha256Hex) && (await verifyP256Async(publicKeyX963, utf8(responseSha256Hex), signatureDer));
}

/** Statements are signed with a prefix `inference/…`, so the signature of a statement never verifies for 64 hex digits. */
function isResponseHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}
