/** `loadOrCreateKey`: software key of a simulated enclave, `enclave-key.json`, mode 0600. Invalid files are errors, never replaced. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';
import { Refusal } from './refusal.js';

export const KEY_FILE = 'enclave-key.json';
const MAX_FILE_BYTES = 4_096;

const fileValidator = lazyValidator(
  Type.Object(
    { v: Type.Literal(1), kind: Type.Literal('simulated'), private_key_pkcs8: Type.String({ maxLength: 1_024 }) },
    { additionalProperties: false },
  ),
);

export interface SoftwareKey {
  readonly privateKey: KeyObject;
  /** P-256 public key in x963 encoding, 65 bytes. */
  readonly publicKey: Uint8Array;
}

/** Reads the key, or creates a key if no file exists. Throws {@link Refusal} `key_unavailable` or `io`. */
export function loadOrCreateKey(dataDir: string): SoftwareKey {
  const path = join(dataDir, KEY_FILE);
  return readKey(path) ?? createKey(path);
}

/** The key in the file; null if no file exists. Throws {@link Refusal}. */
function readKey(path: string): SoftwareKey | null {
  const file = openExisting(path);
  if (file === null) return null;
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) throw new Refusal('key_unavailable', `${KEY_FILE} is not a regular file`);
    if ((stat.mode & 0o077) !== 0) throw new Refusal('key_unavailable', `${KEY_FILE} is open to other users (its mode must be 0600)`);
    if (stat.uid !== process.getuid?.()) throw new Refusal('key_unavailable', `${KEY_FILE} belongs to another user`);
    if (stat.size > MAX_FILE_BYTES) throw new Refusal('key_unavailable', `${KEY_FILE} is damaged`);
    return parseKey(readFileSync(file, 'utf8'));
  } finally {
    closeSync(file);
  }
}

/** Descriptor of the key file; null if no file exists. Throws {@link Refusal}. */
function openExisting(path: string): number | null {
  try {
    // Does not follow links: the file must be private and belong to this user.
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT') return null;
    throw new Refusal('key_unavailable', `${KEY_FILE} cannot be opened (${code})`);
  }
}

function parseKey(text: string): SoftwareKey {
  try {
    const file: unknown = JSON.parse(text);
    if (fileValidator().Check(file)) {
      const der = Buffer.from(file.private_key_pkcs8, 'base64');
      return softwareKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
    }
  } catch (error) {
    if (error instanceof Refusal) throw error;
    // Falls through: unparsable content is damaged.
  }
  throw new Refusal('key_unavailable', `${KEY_FILE} is damaged`);
}

/** Creates the file atomically, and never replaces an existing file. */
function createKey(path: string): SoftwareKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  const text = `${JSON.stringify({ v: 1, kind: 'simulated', private_key_pkcs8: pkcs8 })}\n`;
  const draft = `${path}.${randomUUID()}.new`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    try {
      writeSynced(draft, text);
      linkSync(draft, path);
    } finally {
      removeIfThere(draft);
    }
    syncDirectory(dirname(path));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EEXIST') throw new Refusal('io', `${KEY_FILE} cannot be written (${code ?? String(error)})`);
    // Another process created the key first; its key is valid.
    const existing = readKey(path);
    if (existing !== null) return existing;
    throw new Refusal('io', `${KEY_FILE} appeared and vanished`);
  }
  return softwareKey(privateKey);
}

function writeSynced(path: string, text: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

function softwareKey(privateKey: KeyObject): SoftwareKey {
  if (privateKey.asymmetricKeyType !== 'ec' || privateKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new Refusal('key_unavailable', `${KEY_FILE} holds no P-256 key`);
  }
  // An SPKI encoding of a P-256 key ends with the 65 bytes of the uncompressed point.
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return { privateKey, publicKey: new Uint8Array(spki.subarray(-65)) };
}
