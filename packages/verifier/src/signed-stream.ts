/**
 * Splits a streamed answer into its signed bytes and the signature, which is an event or an SSE comment.
 *
 * The signature covers all bytes before it, except the coordinator's keep-alive comments between events.
 */
import { concatBytes, fromUtf8, StreamCheck } from '@inference/protocol';
import type { ResponseProof } from './response-proof.js';

export type SignedStream =
  | {
      readonly kind: 'signed';
      readonly signedBytes: Uint8Array;
      readonly proof: ResponseProof;
      /** Whether the unsigned signature event names the same answer and model as the signed events. */
      readonly sameEnvelope: boolean;
    }
  | { readonly kind: 'refused'; readonly reason: string };

/** Bytes allowed after a signature in an event, as in chat and completions streams: the end of the event, and the terminator. */
const END_AFTER_EVENT = /^\n(?:data: \[DONE\]\n\n)?$/;
/** Bytes allowed after a signature in a comment: the terminator, which Messages streams lack. */
const END_AFTER_COMMENT = /^(?:data: \[DONE\]\n\n)?$/;
const COMMENT_MARK = ': inference-signature ';
/** Members common to all events of a chat or completions stream. */
const ENVELOPE = ['id', 'object', 'created', 'model'] as const;
/** Members allowed in the unsigned signature event. Other members could influence clients. */
const EVENT_MEMBERS: ReadonlySet<string> = new Set([
  ...[...ENVELOPE, 'choices', 'usage'],
  ...['se_signature', 'response_hash', 'receipt', 'receipt_signature'],
]);

/** Control and format characters, and characters that some parsers treat as line ends. Model names contain none. */
const INVISIBLE = /[^\P{C}\n]|[\p{Zl}\p{Zp}]/u;

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;

/** Splits a streamed answer's exact body. Refuses bodies that clients could read differently from the signed bytes. */
export function splitSignedStream(body: Uint8Array): SignedStream {
  // SSE readers also end a line at a lone CR, so a comment could hide an unsigned event.
  if (body.includes(CR)) return refused('The stream contains a carriage return, behind which unsigned content could hide.');
  const signed: Uint8Array[] = [];
  let found: { readonly line: Line; readonly proof: ResponseProof; readonly signedParts: number } | null = null;
  let afterSignature: Uint8Array[] = [];
  let betweenEvents = true;
  for (const line of linesOf(body)) {
    if (line.kind === 'content') betweenEvents = line.bytes[0] === LF;
    // The blank line after a comment would end the surrounding event early and lose its name or first lines.
    else if (!betweenEvents) return refused('A comment stands inside an event, which a client would read otherwise than it was signed.');
    else if (!isPrintableAscii(line.bytes)) {
      return refused('A comment holds more than printable ASCII: some readers end a line there, behind which unsigned content could hide.');
    }
    const proof = line.kind === 'comment' ? proofOfComment(line.bytes) : proofOfEvent(line.bytes);
    if (proof !== null) {
      found = { line, proof, signedParts: signed.length };
      afterSignature = [];
    } else if (line.kind === 'content') afterSignature.push(line.bytes);
    if (line.kind === 'content') signed.push(line.bytes);
  }
  if (found === null) return refused('The stream has no signature event: it was cut off, or it ended in an error.');
  const tail = decodeUtf8OrEmpty(concatBytes(...afterSignature));
  const isEvent = found.line.kind === 'content';
  if (!(isEvent ? END_AFTER_EVENT : END_AFTER_COMMENT).test(tail)) return refused('Unsigned content follows the signature event.');
  const covered = signed.slice(0, found.signedParts);
  const check = new StreamCheck([]);
  if (!covered.every((bytes) => check.accepts(bytes))) {
    return refused('The signed events hold a line that providers do not write, at which a client may stop to read.');
  }
  if (!check.isComplete) return refused('The signature stands inside an event, which a client would read otherwise than it was signed.');
  const sameEnvelope = !isEvent || hasEnvelopeOf(found.line.bytes, covered);
  return { kind: 'signed', signedBytes: concatBytes(...covered), proof: found.proof, sameEnvelope };
}

interface Line {
  readonly kind: 'comment' | 'content';
  readonly bytes: Uint8Array;
}

/** Lines with their LF. A comment is a line that begins with a colon, together with the following blank line. */
function* linesOf(body: Uint8Array): Generator<Line> {
  let start = 0;
  while (start < body.length) {
    const feed = body.indexOf(LF, start);
    let end = feed === -1 ? body.length : feed + 1;
    const comment = body[start] === COLON;
    if (comment && body[end] === LF) end++;
    yield { kind: comment ? 'comment' : 'content', bytes: body.subarray(start, end) };
    start = end;
  }
}

/**
 * Proof in a `data:` line with `se_signature`; null for other lines. The event is unsigned, so other content is not allowed.
 *
 * Refused: choices, usage, members of other formats, and escapes, which could hide a duplicate member.
 */
function proofOfEvent(line: Uint8Array): ResponseProof | null {
  const text = decodeUtf8OrEmpty(line);
  if (!text.startsWith('data: {') || text.split('"se_signature"').length !== 2) return null;
  if (INVISIBLE.test(text) || text.includes('\\') || text.split('"choices"').length !== 2 || text.split('"usage"').length > 2) return null;
  const value = parseObject(text.slice('data: '.length));
  if (value === null || !Object.hasOwn(value, 'se_signature') || (value.usage ?? null) !== null) return null;
  if (!Array.isArray(value.choices) || value.choices.length !== 0) return null;
  if (!Object.keys(value).every((name) => EVENT_MEMBERS.has(name))) return null;
  return proofIn(value);
}

/** Whether id, object, time and model of the signature event, if present, equal the first signed event. */
function hasEnvelopeOf(event: Uint8Array, signed: readonly Uint8Array[]): boolean {
  const firstLine = signed.find((line) => dataOf(line) !== null);
  const first = firstLine === undefined ? null : dataOf(firstLine);
  const own = dataOf(event) ?? {};
  return ENVELOPE.every((name) => !Object.hasOwn(own, name) || own[name] === first?.[name]);
}

function dataOf(line: Uint8Array): Readonly<Record<string, unknown>> | null {
  const text = decodeUtf8OrEmpty(line);
  return text.startsWith('data: {') ? parseObject(text.slice('data: '.length)) : null;
}

/** The proof in a signature comment, which no client shows; null for every other comment. */
function proofOfComment(block: Uint8Array): ResponseProof | null {
  const text = decodeUtf8OrEmpty(block);
  if (!text.startsWith(COMMENT_MARK) || text.includes('\\')) return null;
  const value = parseObject(text.slice(COMMENT_MARK.length));
  return value === null || !Object.hasOwn(value, 'se_signature') ? null : proofIn(value);
}

function proofIn(value: Readonly<Record<string, unknown>>): ResponseProof {
  return {
    responseHash: textOf(value.response_hash),
    signature: textOf(value.se_signature),
    receipt: textOf(value.receipt),
    receiptSignature: textOf(value.receipt_signature),
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : null;
  } catch {
    // A line without JSON is not a signature event. As content, the hash covers the line.
    return null;
  }
}

/** Printable ASCII in lines that end with LF. Unsigned parts contain nothing else, so every reader sees the same lines. */
function isPrintableAscii(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === LF || (byte >= 0x20 && byte <= 0x7e));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Returns an empty string for invalid UTF-8, which is neither a signature event nor a terminator. */
function decodeUtf8OrEmpty(bytes: Uint8Array): string {
  try {
    return fromUtf8(bytes);
  } catch {
    return '';
  }
}

function refused(reason: string): SignedStream {
  return { kind: 'refused', reason };
}
