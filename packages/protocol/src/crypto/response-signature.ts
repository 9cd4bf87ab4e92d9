/** The signature every client can check: ECDSA over the 64 ASCII digits of SHA-256(B), B being the signed response bytes. */
import { createHash } from 'node:crypto';
import { utf8 } from '../bytes.js';
import { verifyP256, verifyP256Async } from './p256.js';

/** Incremental SHA-256 of B, the response bytes. `digestHex` finishes the hash and returns 64 lowercase digits. */
export interface ResponseHash {
  update(bytes: Uint8Array): void;
  digestHex(): string;
}

export function responseHash(): ResponseHash {
  const hash = createHash('sha256');
  return {
    update: (bytes) => void hash.update(bytes),
    digestHex: () => hash.digest('hex'),
  };
}

/** Verifies an enclave's signature over the hexadecimal response hash. Gives false on anything malformed; never throws. */
export function verifyResponseSignature(publicKeyX963: Uint8Array, responseSha256Hex: string, signatureDer: Uint8Array): boolean {
  return isResponseHash(responseSha256Hex) && verifyP256(publicKeyX963, utf8(responseSha256Hex), signatureDer);
}

/** As {@link verifyResponseSignature}, on the thread pool. Never rejects. */
export async function verifyResponseSignatureAsync(
  publicKeyX963: Uint8Array,
  responseSha256Hex: string,
  signatureDer: Uint8Array,
): Promise<boolean> {
  return isResponseHash(responseSha256Hex) && (await verifyP256Async(publicKeyX963, utf8(responseSha256Hex), signatureDer));
}

/** 64 digits can be no statement, so a signature made for another purpose never passes here (design: sealing). */
function isResponseHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}
