/**
 * Transparency log in a backup: signs a checkpoint (size and root hash of the log) for the manifest, and compares a restored log with it.
 *
 * The log's private key is one of the backup's secrets.
 */
import {
  checkpointText,
  formatNoteKey,
  formatSignedNote,
  fromHex,
  type NoteKey,
  openCheckpoint,
  parseNoteKey,
  signNote,
  timeKey,
} from '@inference/protocol';
import { ed25519KeyPairFrom, nodeLogCrypto, sha256 } from '@inference/protocol/crypto';
import type { LogHead } from '../database/backup/database-figures.js';
import type { SecretRow } from '../database/backup/restored-rows.js';
import { LOG_KEY_SECRET } from '../transparency-log/transparency-log.js';
import type { Manifest } from './manifest.js';

type LogPart = Manifest['transparency_log'];

/** Log part of a manifest, with a checkpoint signed at `at`. Null: the secrets lack the log's private key. */
export function signedLogHead(head: LogHead, secrets: readonly SecretRow[], at: Date): LogPart {
  const pair = keyPair(secrets);
  if (pair === null) return null;
  const { origin, size, publishedSize, publishedRoot: root, cosignatures } = head;
  const key: NoteKey = { name: origin, type: 'ed25519', publicKey: pair.publicKey };
  const text = checkpointText({ origin, size: publishedSize, root: fromHex(root) });
  const seconds = Math.floor(at.getTime() / 1000);
  const signatures = [key, timeKey(key)].map((signer) => signNote(sha256, signer, pair.sign, text, seconds));
  const checkpoint = `${formatSignedNote({ text, signatures })}${cosignatures}`;
  return { verifier_key: formatNoteKey(sha256, key), size, published_size: publishedSize, root, checkpoint };
}

/** Public key of the log in C2SP form (verifier key). Null: the secrets lack the private key. */
export function verifierKeyOf(origin: string, secrets: readonly SecretRow[]): string | null {
  const pair = keyPair(secrets);
  return pair === null ? null : formatNoteKey(sha256, { name: origin, type: 'ed25519', publicKey: pair.publicKey });
}

/** Differences between the head of a restored log and the signed checkpoint of the manifest, as sentences. Empty: none. */
export function compareWithCheckpoint(log: NonNullable<LogPart>, head: LogHead | null): string[] {
  try {
    const { origin, size, root } = openCheckpoint(nodeLogCrypto, log.checkpoint, parseNoteKey(sha256, log.verifier_key), []);
    const isSame = head?.origin === origin && head.publishedSize === size && head.publishedRoot === Buffer.from(root).toString('hex');
    return isSame ? [] : ['the published tree is not that of the signed checkpoint in the manifest'];
  } catch (error) {
    return [`the checkpoint in the manifest does not verify: ${error instanceof Error ? error.message : String(error)}`];
  }
}

function keyPair(secrets: readonly SecretRow[]) {
  const secret = secrets.find(({ name }) => name === LOG_KEY_SECRET);
  return secret === undefined ? null : ed25519KeyPairFrom(fromHex(secret.value));
}
