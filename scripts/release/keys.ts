/** Creates and reads the operator's release key (Ed25519), a PEM file outside the repository. Builds embed the public key. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Release, releaseBytes, toBase64 } from '@inference/protocol';
import { ROOT } from './manifest.js';

/** Creates a key and returns its public half. Throws when the file exists or would be inside the repository. */
export function makeReleaseKey(file: string): string {
  const folder = realpathSync(dirname(resolve(file)));
  if (folder === ROOT || folder.startsWith(`${ROOT}/`)) throw new Error('a private key must not lie in the repository');
  const { privateKey } = generateKeyPairSync('ed25519');
  writeFileSync(file, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600, flag: 'wx' });
  return publicKeyOf(privateKey);
}

/** Throws when other users can read the file, or the file holds another kind of key. */
export function readReleaseKey(file: string): KeyObject {
  if ((statSync(file).mode & 0o077) !== 0) throw new Error(`other users can read ${file}: run chmod 600, and think about a new key`);
  const key = createPrivateKey(readFileSync(file));
  if (key.asymmetricKeyType !== 'ed25519') throw new Error(`${file} is no Ed25519 key`);
  return key;
}

export function publicKeyOf(key: KeyObject): string {
  // The last 32 bytes of the SubjectPublicKeyInfo (RFC 8410 section 4).
  return toBase64(createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32));
}

export function signRelease(release: Omit<Release, 'signature'>, key: KeyObject): Release {
  return { ...release, signature: toBase64(sign(null, releaseBytes(release), key)) };
}
