/**
 * Checkpoints of the transparency log (C2SP tlog-checkpoint): format and verification.
 *
 * The log signs each checkpoint twice: with plain Ed25519, and with a timestamped cosignature by the same key.
 */
import { fromBase64OrNull, toBase64 } from '../bytes.js';
import { type LogCrypto, LogFormatError } from './crypto.js';
import { HASH_BYTES } from './merkle-tree.js';
import { type NoteKey, parseSignedNote, verifyNote } from './signed-note.js';

export interface Checkpoint {
  /** Name of the log, also the name of its key. */
  readonly origin: string;
  /** Number of leaves. */
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
}

/** The signed text: origin, size and root, one per line. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${toBase64(root)}\n`;
}

/** Parses the signed text. Ignores extension lines. Throws LogFormatError. */
export function parseCheckpointText(text: string): Checkpoint {
  const lines = text.split('\n').slice(0, -1);
  const [origin = '', size = '', base64 = ''] = lines;
  const root = fromBase64OrNull(base64);
  const isNumber = /^(0|[1-9]\d{0,15})$/.test(size) && Number.isSafeInteger(Number(size));
  if (!isNumber || root?.length !== HASH_BYTES || lines.includes('')) throw new LogFormatError('the note is not a checkpoint');
  return { origin, size: Number(size), root };
}

export interface OpenedCheckpoint extends Checkpoint {
  /** Time of the log's cosignature, in milliseconds, with a resolution of one second. */
  readonly signedAt: number;
  /** Cosignatures of configured witnesses. */
  readonly cosignatures: readonly { readonly name: string; readonly signedAt: number }[];
}

/**
 * Verifies a checkpoint with the log's key (type `ed25519`), and collects valid cosignatures of the given witnesses.
 *
 * @throws {LogFormatError} The note is malformed, of another origin, or a signature of the log is missing or invalid.
 */
export function openCheckpoint(crypto: LogCrypto, note: string, logKey: NoteKey, witnesses: readonly NoteKey[]): OpenedCheckpoint {
  const signed = parseSignedNote(note);
  const checkpoint = parseCheckpointText(signed.text);
  if (checkpoint.origin !== logKey.name) throw new LogFormatError('the checkpoint is of another log');
  if (verifyNote(crypto, signed, logKey) === null) throw new LogFormatError('the checkpoint is not signed by the log');
  const time = verifyNote(crypto, signed, timeKey(logKey));
  if (time === null) throw new LogFormatError("the checkpoint lacks the log's signed time");
  const cosignatures = witnesses.flatMap((witness) => {
    const cosignature = verifyNote(crypto, signed, witness);
    return cosignature === null ? [] : [{ name: witness.name, signedAt: 1000 * cosignature.timeSeconds }];
  });
  return { ...checkpoint, signedAt: 1000 * time.timeSeconds, cosignatures };
}

/** The log's key as a cosignature key, for its timestamped signature. */
export function timeKey({ name, publicKey }: NoteKey): NoteKey {
  return { name, publicKey, type: 'cosignature' };
}
