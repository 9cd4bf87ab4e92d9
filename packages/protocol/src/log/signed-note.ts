/**
 * Signed notes and verifier keys (C2SP signed-note), the signature format of checkpoints.
 *
 * Signatures are plain Ed25519, or timestamped cosignatures (C2SP tlog-cosignature).
 */
import { concatBytes, fromBase64OrNull, fromHex, toBase64, toHex, utf8 } from '../bytes.js';
import { type LogCrypto, LogFormatError, type Sha256 } from './crypto.js';

/** Numbers that C2SP assigns to the signature types plain Ed25519 and cosignature/v1. */
export const NOTE_SIGNATURE_TYPES = { ed25519: 0x01, cosignature: 0x04 } as const;
export type NoteSignatureType = keyof typeof NOTE_SIGNATURE_TYPES;

export const MAX_NOTE_SIGNATURES = 64;
export const MAX_NOTE_LENGTH = 16_384;

const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const TIME_BYTES = 8;
const KEY_ID_BYTES = 4;
const SIGNATURE_LINE = /^— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/;

export interface NoteKey {
  readonly name: string;
  readonly type: NoteSignatureType;
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array;
}

export interface NoteSignature {
  readonly name: string;
  /** 8 hexadecimal digits. */
  readonly keyId: string;
  readonly bytes: Uint8Array;
}

export interface SignedNote {
  /** Signed text with its final newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** First 4 bytes of SHA-256(name ‖ newline ‖ type ‖ public key), in hexadecimal. */
export function noteKeyId(sha256: Sha256, { name, type, publicKey }: NoteKey): string {
  const hash = sha256(concatBytes(utf8(`${name}\n`), Uint8Array.of(NOTE_SIGNATURE_TYPES[type]), publicKey));
  return toHex(hash.subarray(0, KEY_ID_BYTES));
}

/** Verifier key: `name+key id+base64(type ‖ public key)`. */
export function formatNoteKey(sha256: Sha256, key: NoteKey): string {
  const material = concatBytes(Uint8Array.of(NOTE_SIGNATURE_TYPES[key.type]), key.publicKey);
  return `${key.name}+${noteKeyId(sha256, key)}+${toBase64(material)}`;
}

/** Parses a verifier key. Throws LogFormatError on a wrong format, type or key id. */
export function parseNoteKey(sha256: Sha256, text: string): NoteKey {
  const [, name = '', keyId = '', base64 = ''] = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const material = fromBase64OrNull(base64);
  const type = (['ed25519', 'cosignature'] as const).find((one) => NOTE_SIGNATURE_TYPES[one] === material?.[0]);
  if (material?.length !== 1 + PUBLIC_KEY_BYTES || type === undefined) throw new LogFormatError('not a verifier key of a known type');
  const key: NoteKey = { name, type, publicKey: material.slice(1) };
  if (noteKeyId(sha256, key) !== keyId) throw new LogFormatError('the key id is not that of the verifier key');
  return key;
}

/** Parses a note. Does not verify signatures. Throws LogFormatError. */
export function parseSignedNote(note: string): SignedNote {
  if (note.length > MAX_NOTE_LENGTH) throw new LogFormatError('the note is too long');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: notes must not contain these
  if (/[\u0000-\u0009\u000b-\u001f]/.test(note)) throw new LogFormatError('the note contains control characters');
  const split = note.lastIndexOf('\n\n');
  if (split <= 0 || !note.endsWith('\n')) throw new LogFormatError('the note has no signatures');
  return { text: note.slice(0, split + 1), signatures: parseSignatureLines(note.slice(split + 2)) };
}

/** Parses signature lines, each with its newline. Throws LogFormatError. */
export function parseSignatureLines(lines: string): NoteSignature[] {
  const texts = lines.split('\n');
  if (texts.pop() !== '' || texts.length === 0) throw new LogFormatError('the last signature line has no newline');
  if (texts.length > MAX_NOTE_SIGNATURES) throw new LogFormatError('the note has too many signatures');
  return texts.map((line) => {
    const [, name, base64 = ''] = SIGNATURE_LINE.exec(line) ?? [];
    const blob = fromBase64OrNull(base64);
    if (name === undefined || blob === null || blob.length <= KEY_ID_BYTES) throw new LogFormatError('a signature line is malformed');
    return { name, keyId: toHex(blob.subarray(0, KEY_ID_BYTES)), bytes: blob.slice(KEY_ID_BYTES) };
  });
}

/** One signature line with its newline. */
export function formatSignatureLine({ name, keyId, bytes }: NoteSignature): string {
  return `— ${name} ${toBase64(concatBytes(fromHex(keyId), bytes))}\n`;
}

/** Formats a note. The text must end in a newline. */
export function formatSignedNote({ text, signatures }: SignedNote): string {
  return `${text}\n${signatures.map(formatSignatureLine).join('')}`;
}

export type SignEd25519 = (message: Uint8Array) => Uint8Array;

/** Signs a text. Only cosignatures include `timeSeconds`, in Unix seconds. */
export function signNote(sha256: Sha256, key: NoteKey, sign: SignEd25519, text: string, timeSeconds: number): NoteSignature {
  const { name } = key;
  const keyId = noteKeyId(sha256, key);
  if (key.type === 'ed25519') return { name, keyId, bytes: sign(utf8(text)) };
  const time = new Uint8Array(TIME_BYTES);
  new DataView(time.buffer).setBigUint64(0, BigInt(timeSeconds));
  return { name, keyId, bytes: concatBytes(time, sign(cosignedMessage(text, timeSeconds))) };
}

/** Result of {@link verifyNote}: `timeSeconds` is 0 for a plain signature. */
export interface VerifiedSignature {
  readonly timeSeconds: number;
}

/** The latest signature by the key; null if there is none, or if one does not verify. Ignores signatures by other keys. */
export function verifyNote(crypto: LogCrypto, note: SignedNote, key: NoteKey): VerifiedSignature | null {
  const keyId = noteKeyId(crypto.sha256, key);
  const own = note.signatures.filter((signature) => signature.name === key.name && signature.keyId === keyId);
  const verified = own.map(({ bytes }) => verifySignature(crypto, note.text, key, bytes));
  if (verified.length === 0 || verified.some((one) => one === null)) return null;
  return verified.reduce((best, one) => ((one?.timeSeconds ?? 0) > (best?.timeSeconds ?? 0) ? one : best), verified[0] ?? null);
}

function verifySignature(crypto: LogCrypto, text: string, { type, publicKey }: NoteKey, bytes: Uint8Array): VerifiedSignature | null {
  if (type === 'ed25519') {
    return bytes.length === SIGNATURE_BYTES && crypto.verifyEd25519(publicKey, utf8(text), bytes) ? { timeSeconds: 0 } : null;
  }
  if (bytes.length !== TIME_BYTES + SIGNATURE_BYTES) return null;
  const time = new DataView(bytes.buffer, bytes.byteOffset, TIME_BYTES).getBigUint64(0);
  if (time > BigInt(Number.MAX_SAFE_INTEGER)) return null;
  const timeSeconds = Number(time);
  return crypto.verifyEd25519(publicKey, cosignedMessage(text, timeSeconds), bytes.subarray(TIME_BYTES)) ? { timeSeconds } : null;
}

/** Signed bytes of cosignature/v1. */
function cosignedMessage(text: string, timeSeconds: number): Uint8Array {
  return utf8(`cosignature/v1\ntime ${timeSeconds}\n${text}`);
}
