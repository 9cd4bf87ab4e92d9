/** Checkpoints of a transparency log (C2SP tlog-checkpoint). This log signs each checkpoint twice: plainly, and with the time. */
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

/** The three signed lines. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${toBase64(root)}\n`;
}

/** Reads the signed text. Extension lines are allowed and ignored. Throws LogFormatError. */
export function parseCheckpointText(text: string): Checkpoint {
  const lines = text.split('\n').slice(0, -1);
  const [origin = '', size = '', base64 = ''] = lines;
  const root = fromBase64OrNull(base64);
  const isNumber = /^(0|[1-9]\d{0,15})$/.test(size) && Number.isSafeInteger(Number(size));
  if (!isNumber || root?.length !== HASH_BYTES || lines.includes('')) throw new LogFormatError('the note is not a checkpoint');
  return { origin, size: Number(size), root };
}

export interface OpenedCheckpoint extends Checkpoint {
  /** Time of the log's own cosignature in milliseconds, to the second. */
  readonly signedAt: number;
  /** Cosignatures of configured witnesses. */
  readonly cosignatures: readonly { readonly name: string; readonly signedAt: number }[];
}

/**
 * Verifies a checkpoint by the log's key (`ed25519`), and collects cosignatures of known witnesses.
 *
 * @throws {LogFormatError} Another origin, or a missing or wrong signature of the log.
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

/** Key of the log's cosignature, which states the time: the same public key as a cosignature key. */
export function timeKey({ name, publicKey }: NoteKey): NoteKey {
  return { name, publicKey, type: 'cosignature' };
}
