/** UTF-8, hexadecimal, base64 and base64url codecs for Node and browsers. Decoders reject non-canonical input (RFC 4648 section 3.5). */

const encoder = new TextEncoder();
// `ignoreBOM` keeps a leading byte order mark as text, so that encoding the text gives the same bytes.
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Node's Buffer, whose conversions are some twenty times faster than portable code; null in a browser. */
const NodeBuffer = typeof Buffer === 'undefined' ? null : Buffer;

/** UTF-8 bytes of a string. Lone surrogates become U+FFFD, as the Encoding Standard says. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Text of UTF-8 bytes. Throws TypeError when the bytes are not well-formed UTF-8. */
export function fromUtf8(bytes: Uint8Array): string {
  return strictDecoder.decode(bytes);
}

export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

const HEX_OF_BYTE = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Lowercase hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  if (NodeBuffer !== null) return NodeBuffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
  let text = '';
  for (const byte of bytes) text += HEX_OF_BYTE[byte];
  return text;
}

/** Decodes lowercase hexadecimal. Throws RangeError on any other text. */
export function fromHex(text: string): Uint8Array {
  if (!/^(?:[0-9a-f]{2})*$/.test(text)) throw new RangeError('not lowercase hexadecimal');
  if (NodeBuffer !== null) return new Uint8Array(NodeBuffer.from(text, 'hex'));
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** Padded standard base64 (RFC 4648 section 4). */
export function toBase64(bytes: Uint8Array): string {
  if (NodeBuffer !== null) return NodeBuffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
  let binary = '';
  for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(binary);
}

/** Decodes canonical padded standard base64. Throws RangeError on any other text. */
export function fromBase64(text: string): Uint8Array {
  const bytes = decodeBase64(text);
  if (bytes === null || !isCanonical(text, bytes)) throw new RangeError('not canonical base64');
  return bytes;
}

/**
 * Whether `text` is the canonical base64 of `bytes`. Re-encodes only the last group, because images have megabytes.
 *
 * The checks catch what lenient decoders tolerate: skipped unknown characters (wrong length), base64url characters, nonzero bits
 * after the last byte (wrong last group), and in Node, characters beyond U+00FF.
 */
function isCanonical(text: string, bytes: Uint8Array): boolean {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  if (text.length % 4 !== 0 || bytes.length !== (text.length / 4) * 3 - padding) return false;
  if (NodeBuffer !== null && NodeBuffer.byteLength(text) !== text.length) return false;
  if (text.includes('-') || text.includes('_')) return false;
  return toBase64(bytes.subarray(Math.max(0, (text.length / 4 - 1) * 3))) === text.slice(-4);
}

/** Like {@link fromBase64}, but returns null instead of throwing. */
export function fromBase64OrNull(text: string): Uint8Array | null {
  try {
    return fromBase64(text);
  } catch {
    return null;
  }
}

function decodeBase64(text: string): Uint8Array | null {
  if (NodeBuffer !== null) return plainBytes(NodeBuffer.from(text, 'base64'));
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) return null;
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Converts a Buffer to a Uint8Array. Copies small buffers, because Node allocates them from a shared pool. */
function plainBytes(buffer: Buffer): Uint8Array {
  return buffer.buffer.byteLength === buffer.length ? new Uint8Array(buffer.buffer) : new Uint8Array(buffer);
}

/** Unpadded base64url (RFC 4648 section 5). */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** Decodes canonical unpadded base64url. Throws RangeError on any other text. */
export function fromBase64Url(text: string): Uint8Array {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) throw new RangeError('not canonical base64url');
  const padded = text
    .replaceAll('-', '+')
    .replaceAll('_', '/')
    .padEnd(Math.ceil(text.length / 4) * 4, '=');
  return fromBase64(padded);
}

/** Compares in constant time. Lengths are not secret. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] as number) ^ (b[i] as number);
  return difference === 0;
}
