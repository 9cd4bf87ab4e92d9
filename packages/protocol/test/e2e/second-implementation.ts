/**
 * Second implementation of the end-to-end profile, written from docs/e2e-protocol.md alone. Shares no code with the package: primitives
 * come from `@noble` and `node:crypto`, and JSON is compared with `JSON.stringify` of sorted members.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { ed25519, x25519 } from '@noble/curves/ed25519.js';
import { expand, extract } from '@noble/hashes/hkdf.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';

type Bytes = Uint8Array;
type Json = { readonly [member: string]: unknown };
export type Part = readonly [kind: number, bytes: Bytes];

export const PADDING = 0;
export const HEAD = 1;
export const BODY = 2;
export const PROOF = 4;

const CHUNK = 262_144;
const NONE = new Uint8Array(0);

export const text = (value: string): Bytes => new Uint8Array(Buffer.from(value, 'utf8'));
export const hex = (bytes: Bytes): string => Buffer.from(bytes).toString('hex');
export const unhex = (value: string): Bytes => new Uint8Array(Buffer.from(value, 'hex'));
export const join = (...parts: readonly Bytes[]): Bytes => new Uint8Array(Buffer.concat(parts));
export const digest = (bytes: Bytes): Bytes => sha256(bytes);
const u16 = (value: number): Bytes => Uint8Array.of(value >> 8, value & 255);
const u32 = (value: number): Bytes => new Uint8Array(Buffer.from(value.toString(16).padStart(8, '0'), 'hex'));

export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}

// Primitives

export function gcmSeal(key: Bytes, nonce: Bytes, aad: Bytes, plaintext: Bytes): Bytes {
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(aad);
  return join(cipher.update(plaintext), cipher.final(), cipher.getAuthTag());
}

export function gcmOpen(key: Bytes, nonce: Bytes, aad: Bytes, sealed: Bytes): Bytes {
  const decipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(aad);
  decipher.setAuthTag(sealed.slice(-16));
  return join(decipher.update(sealed.slice(0, -16)), decipher.final());
}

const hkdfExpand = (prk: Bytes, info: Bytes, length: number): Bytes => expand(sha256, prk, info, length);

/** RFC 9180 section 4. */
function labeled(suite: Bytes) {
  const prefix = join(text('HPKE-v1'), suite);
  return {
    extract: (salt: Bytes, label: string, ikm: Bytes) => extract(sha256, join(prefix, text(label), ikm), salt),
    expand: (prk: Bytes, label: string, info: Bytes, length: number) =>
      hkdfExpand(prk, join(u16(length), prefix, text(label), info), length),
  };
}

const kem = labeled(join(text('KEM'), unhex('0020')));
const suite = labeled(join(text('HPKE'), unhex('002000010002')));

export interface Context {
  readonly shared: Bytes;
  readonly key: Bytes;
  readonly nonce: Bytes;
  export(label: string): Bytes;
}

/** RFC 9180 section 5.1, base mode. `dh`: the X25519 result of either side. */
function contextOf(dh: Bytes, enc: Bytes, publicKey: Bytes, info: Bytes): Context {
  const shared = kem.expand(kem.extract(NONE, 'eae_prk', dh), 'shared_secret', join(enc, publicKey), 32);
  const schedule = join(Uint8Array.of(0), suite.extract(NONE, 'psk_id_hash', NONE), suite.extract(NONE, 'info_hash', info));
  const secret = suite.extract(shared, 'secret', NONE);
  const exporter = suite.expand(secret, 'exp', schedule, 32);
  return {
    shared,
    key: suite.expand(secret, 'key', schedule, 32),
    nonce: suite.expand(secret, 'base_nonce', schedule, 12),
    export: (label) => suite.expand(exporter, 'sec', text(label), 32),
  };
}

// Parts and frames

export function padme(length: number): number {
  if (length < 2) return length;
  const e = Math.floor(Math.log2(length));
  const s = Math.floor(Math.log2(e)) + 1;
  const step = 2 ** (e - s);
  return Math.ceil(length / step) * step;
}

export const to512 = (length: number): number => Math.ceil(length / 512) * 512;

export function encodeParts(parts: readonly Part[], padded: (length: number) => number): Bytes {
  const content = join(...parts.map(([kind, bytes]) => join(Uint8Array.of(kind), u32(bytes.length), bytes)));
  const padding = padded(content.length + 5) - content.length - 5;
  return join(content, Uint8Array.of(PADDING), u32(padding), new Uint8Array(padding));
}

export function decodeParts(plaintext: Bytes): Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < plaintext.length; ) {
    const length = Buffer.from(plaintext).readUInt32BE(at + 1);
    const bytes = plaintext.slice(at + 5, at + 5 + length);
    if (bytes.length !== length) throw new Error('part cut off');
    const kind = plaintext[at] as number;
    if (kind > PROOF) throw new Error('unknown part');
    if (kind === PADDING && (bytes.some((byte) => byte !== 0) || length > 512 + Math.floor(at / 8))) throw new Error('bad padding');
    if (kind !== PADDING) parts.push([kind, bytes]);
    at += 5 + length;
  }
  return parts;
}

interface Keys {
  readonly key: Bytes;
  readonly nonce: Bytes;
}

function frameNonce(nonce: Bytes, number: number): Bytes {
  const counter = join(new Uint8Array(8), u32(number));
  return nonce.map((byte, index) => byte ^ (counter[index] as number));
}

export function sealFrame({ key, nonce }: Keys, number: number, flags: number, plaintext: Bytes): Bytes {
  const sealed = gcmSeal(key, frameNonce(nonce, number), join(u32(number), Uint8Array.of(flags)), plaintext);
  return join(Uint8Array.of(flags), u32(sealed.length).slice(1), sealed);
}

/** Whether a frame of an answer opens under one of the 64 numbers after its own: frames before it are missing. */
function opensLater({ key, nonce }: Keys, number: number, frame: Bytes): boolean {
  return Array.from({ length: 64 }, (_, index) => number + 1 + index).some((later) => {
    try {
      gcmOpen(key, frameNonce(nonce, later), join(u32(later), frame.slice(0, 1)), frame.slice(4));
      return true;
    } catch {
      return false;
    }
  });
}

/** Frames of one direction: opened chunks, and where the final frame begins. Keep-alives are left out of `hashed`. */
function openFrames({ key, nonce }: Keys, bytes: Bytes, isAnswer: boolean): { chunks: Bytes[]; hashed: Bytes } {
  const chunks: Bytes[] = [];
  const hashed: Bytes[] = [];
  for (let at = 0; ; ) {
    if (bytes.length < at + 4) throw new Error('truncated');
    const flags = bytes[at] as number;
    const length = Buffer.from(bytes).readUIntBE(at + 1, 3);
    const frame = bytes.slice(at, at + 4 + length);
    if (frame.length !== 4 + length) throw new Error('truncated');
    at += frame.length;
    if (isAnswer && flags === 0x80) throw new Error(`aborted: ${Buffer.from(frame.slice(4)).toString()}`);
    if (flags > 1 || length > CHUNK + 16) throw new Error('bad frame');
    if (isAnswer && flags === 0 && length === 0) continue;
    const number = chunks.length;
    try {
      chunks.push(gcmOpen(key, frameNonce(nonce, number), join(u32(number), Uint8Array.of(flags)), frame.slice(4)));
    } catch {
      throw new Error(isAnswer && opensLater({ key, nonce }, number, frame) ? 'truncated' : 'open_failed');
    }
    if (flags === 0) hashed.push(frame);
    else if (at !== bytes.length) throw new Error('bytes after the final frame');
    else return { chunks, hashed: join(...hashed) };
  }
}

// Checkpoint in the head of an answer

/** Tree head of a signed note (C2SP signed-note, tlog-checkpoint) with a signature of the log of this verifier key. */
export function openCheckpoint(note: string, verifierKey: string): { readonly size: number; readonly root: string } {
  const [signedText = '', lines = ''] = note.split('\n\n');
  const [, name, id, key = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(verifierKey) ?? [];
  const publicKey = new Uint8Array(Buffer.from(key, 'base64')).slice(1);
  const own = lines.split('\n').flatMap((line) => {
    const [dash, signer, signature = ''] = line.split(' ');
    const bytes = new Uint8Array(Buffer.from(signature, 'base64'));
    return dash === '—' && signer === name && hex(bytes.slice(0, 4)) === id ? [bytes.slice(4)] : [];
  });
  const isSigned = own.some((signature) => ed25519.verify(signature, text(`${signedText}\n`), publicKey));
  const [origin, size, root = ''] = signedText.split('\n');
  if (!isSigned || origin !== name) throw new Error('not a checkpoint of this log');
  return { size: Number(size), root: hex(new Uint8Array(Buffer.from(root, 'base64'))) };
}

// Request

export interface Recipient {
  readonly provider_id: string;
  readonly publicKey: Bytes;
}

function bodyKeys(contextHash: Bytes, dataKey: Bytes) {
  const prk = extract(sha256, dataKey, contextHash);
  return {
    prk,
    key: hkdfExpand(prk, text('inference/e2e/v1 key'), 32),
    nonce: hkdfExpand(prk, text('inference/e2e/v1 nonce'), 12),
    commitment: hkdfExpand(prk, text('inference/e2e/v1 commit'), 32),
  };
}

const infoOf = (contextHash: Bytes): Bytes => join(text('inference/e2e/v1'), Uint8Array.of(0), contextHash);

/** `terms`: members of the context but `v`, `body_bytes` and `recipients`. */
export function sealRequest(
  terms: Json,
  recipients: readonly Recipient[],
  head: Json,
  body: Bytes,
  secrets: { readonly dataKey: Bytes; readonly ephemerals: readonly Bytes[] },
): { bytes: Bytes; contexts: Context[]; encs: Bytes[] } {
  const keyIds = recipients.map(({ publicKey }) => sha256(publicKey).slice(0, 8));
  const named = recipients.map(({ provider_id }, index) => ({ provider_id, key_id: hex(keyIds[index] as Bytes) }));
  const context = text(canonical({ ...terms, v: 1, body_bytes: body.length, recipients: named }));
  const contextHash = sha256(context);
  const encs = secrets.ephemerals.map((key) => x25519.getPublicKey(key));
  const contexts = recipients.map(({ publicKey }, index) => {
    const dh = x25519.getSharedSecret(secrets.ephemerals[index] as Bytes, publicKey);
    return contextOf(dh, encs[index] as Bytes, publicKey, infoOf(contextHash));
  });
  const wrapped = contexts.map(({ key, nonce }, index) =>
    join(keyIds[index] as Bytes, encs[index] as Bytes, gcmSeal(key, nonce, NONE, secrets.dataKey)),
  );
  const keys = bodyKeys(contextHash, secrets.dataKey);
  const plaintext = encodeParts(
    [
      [HEAD, text(canonical(head))],
      [BODY, body],
    ],
    padme,
  );
  const count = Math.ceil(plaintext.length / CHUNK);
  const frames = Array.from({ length: count }, (_, index) =>
    sealFrame(keys, index, index === count - 1 ? 1 : 0, plaintext.slice(index * CHUNK, (index + 1) * CHUNK)),
  );
  const start = join(text('IE2E'), Uint8Array.of(1), u16(context.length), context, Uint8Array.of(recipients.length));
  return { bytes: join(start, ...wrapped, keys.commitment, ...frames), contexts, encs };
}

export interface OpenedRequest {
  readonly context: Json;
  readonly contextHash: Bytes;
  readonly head: Json;
  readonly body: Bytes;
  readonly enc: Bytes;
  readonly hpke: Context;
}

export function openRequest(bytes: Bytes, index: number, privateKey: Bytes): OpenedRequest {
  if (hex(bytes.slice(0, 5)) !== hex(join(text('IE2E'), Uint8Array.of(1)))) throw new Error('not a sealed request');
  const contextEnd = 7 + Buffer.from(bytes).readUInt16BE(5);
  const contextBytes = bytes.slice(7, contextEnd);
  const context = JSON.parse(Buffer.from(contextBytes).toString()) as Json;
  if (canonical(context) !== Buffer.from(contextBytes).toString()) throw new Error('not canonical');
  const recipients = context.recipients as readonly { readonly key_id: string }[];
  const count = bytes[contextEnd];
  if (count !== recipients.length || index >= count) throw new Error('wrong recipients');
  const at = contextEnd + 1 + index * 88;
  const publicKey = x25519.getPublicKey(privateKey);
  const keyId = hex(bytes.slice(at, at + 8));
  if (keyId !== recipients[index]?.key_id || keyId !== hex(sha256(publicKey).slice(0, 8))) throw new Error('wrong recipient');
  const enc = bytes.slice(at + 8, at + 40);
  const contextHash = sha256(contextBytes);
  const hpke = contextOf(x25519.getSharedSecret(privateKey, enc), enc, publicKey, infoOf(contextHash));
  const keys = bodyKeys(contextHash, gcmOpen(hpke.key, hpke.nonce, NONE, bytes.slice(at + 40, at + 88)));
  const frames = contextEnd + 1 + count * 88 + 32;
  if (hex(bytes.slice(frames - 32, frames)) !== hex(keys.commitment)) throw new Error('another data key');
  const plaintext = join(...openFrames(keys, bytes.slice(frames), false).chunks);
  const [head, body, ...more] = decodeParts(plaintext);
  if (head?.[0] !== HEAD || body?.[0] !== BODY || more.length > 0) throw new Error('wrong parts');
  if (body[1].length !== context.body_bytes) throw new Error('wrong body_bytes');
  if (plaintext.length !== padme(head[1].length + body[1].length + 15)) throw new Error('wrong padding');
  return { context, contextHash, head: JSON.parse(Buffer.from(head[1]).toString()) as Json, body: body[1], enc, hpke };
}

// Answer

export function answerKeys(hpke: Context, enc: Bytes, responseNonce: Bytes): Keys {
  const prk = extract(sha256, hpke.export('inference/e2e/v1 response'), join(enc, responseNonce));
  return { key: hkdfExpand(prk, text('key'), 32), nonce: hkdfExpand(prk, text('nonce'), 12) };
}

/** `pieces`: plaintext of each piece before the final frame, at most 256 KiB each. */
export function sealAnswer(hpke: Context, enc: Bytes, responseNonce: Bytes, pieces: readonly Bytes[], proof: string): Bytes {
  const keys = answerKeys(hpke, enc, responseNonce);
  const frames = pieces.map((piece, number) => sealFrame(keys, number, 0, piece));
  return join(responseNonce, ...frames, sealFrame(keys, pieces.length, 1, encodeParts([[PROOF, text(proof)]], to512)));
}

export function openAnswer(hpke: Context, enc: Bytes, bytes: Bytes): { parts: Part[]; sealedSha256: string } {
  const responseNonce = bytes.slice(0, 32);
  const { chunks, hashed } = openFrames(answerKeys(hpke, enc, responseNonce), bytes.slice(32), true);
  const parts = decodeParts(join(...chunks));
  if (parts[0]?.[0] !== HEAD || parts.findIndex(([kind]) => kind === PROOF) !== parts.length - 1) throw new Error('wrong parts');
  return { parts, sealedSha256: hex(sha256(join(responseNonce, hashed))) };
}

/** `kind`: `request`, `response` or `image`. */
export function commitment(hpke: Context, kind: string, bytes: Bytes, index: Bytes = NONE): string {
  return hex(hmac(sha256, hpke.export('inference/e2e/v1 receipt'), join(text(kind), Uint8Array.of(0), index, sha256(bytes))));
}
