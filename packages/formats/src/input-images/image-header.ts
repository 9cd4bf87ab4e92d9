/**
 * Reads type, dimensions and completeness of PNG, JPEG, GIF and WebP files from their headers, without decoding pixels.
 *
 * The input is untrusted: every offset is checked, and parsing takes at most linear time. Chunk loops have a limit, because a chunk
 * may be only a few bytes long.
 */
import type { InputImageType } from '../request.js';

export interface ImageHeader {
  readonly mediaType: InputImageType;
  /** Width and height in pixels, before any EXIF rotation. */
  readonly width: number;
  readonly height: number;
  readonly isAnimated: boolean;
}

/** `truncated`: the file ends early. `malformed`: the structure violates the file format. */
export type HeaderProblem = 'truncated' | 'malformed';

/** Detects the type by the first bytes (WHATWG MIME Sniffing section 6.1); null: not supported. */
export function imageTypeOf(bytes: Uint8Array): InputImageType | null {
  if (startsWith(bytes, 0, '\x89PNG\r\n\x1a\n')) return 'image/png';
  if (startsWith(bytes, 0, '\xff\xd8\xff')) return 'image/jpeg';
  if (startsWith(bytes, 0, 'GIF87a') || startsWith(bytes, 0, 'GIF89a')) return 'image/gif';
  if (startsWith(bytes, 0, 'RIFF') && startsWith(bytes, 8, 'WEBP')) return 'image/webp';
  return null;
}

/** Detects some unsupported types by the first bytes, for the error message; null: unknown. */
export function otherTypeOf(bytes: Uint8Array): string | null {
  if (startsWith(bytes, 0, '%PDF-')) return 'PDF';
  if (startsWith(bytes, 0, 'II*\0') || startsWith(bytes, 0, 'MM\0*')) return 'TIFF';
  if (startsWith(bytes, 0, 'BM')) return 'BMP';
  if (startsWith(bytes, 4, 'ftypavi')) return 'AVIF';
  if (startsWith(bytes, 4, 'ftyphe') || startsWith(bytes, 4, 'ftypmif1')) return 'HEIC';
  const text = String.fromCharCode(...bytes.subarray(0, 256));
  return /^(?:\xef\xbb\xbf)?\s*<(?:\?xml|!DOCTYPE svg|!--|svg)/i.test(text) ? 'SVG' : null;
}

/** Reads the header of a file. `mediaType`: from {@link imageTypeOf}. */
export function readImageHeader(bytes: Uint8Array, mediaType: InputImageType): ImageHeader | HeaderProblem {
  const read = READERS[mediaType](bytes);
  if (typeof read === 'string') return read;
  return read.width === 0 || read.height === 0 ? 'malformed' : { mediaType, ...read };
}

/** Maximum chunks of a PNG or WebP file. Encoders write chunks of 8 KiB or more. */
const MAX_CHUNKS = 20_000;

type ReadResult = Omit<ImageHeader, 'mediaType'> | HeaderProblem;

const READERS: Readonly<Record<InputImageType, (bytes: Uint8Array) => ReadResult>> = {
  'image/png': readPng,
  'image/jpeg': readJpeg,
  'image/gif': readGif,
  'image/webp': readWebP,
};

/** PNG specification sections 5.3 and 11.2. An `acTL` chunk marks an animated PNG. */
function readPng(bytes: Uint8Array): ReadResult {
  const view = viewOf(bytes);
  let at = 8;
  let size: { readonly width: number; readonly height: number } | null = null;
  let hasData = false;
  let isAnimated = false;
  for (let chunkCount = 1; at + 12 <= bytes.length; chunkCount++) {
    if (chunkCount > MAX_CHUNKS) return 'malformed';
    const length = view.getUint32(at);
    if (at + 12 + length > bytes.length) return 'truncated';
    const type = textAt(bytes, at + 4, 4);
    if (size === null) {
      if (type !== 'IHDR' || length !== 13) return 'malformed';
      size = { width: view.getUint32(at + 8), height: view.getUint32(at + 12) };
    } else if (type === 'IHDR') return 'malformed';
    if (type === 'acTL') isAnimated = true;
    if (type === 'IDAT') hasData = true;
    if (type === 'IEND') return hasData ? { ...size, isAnimated } : 'malformed';
    at += 12 + length;
  }
  return 'truncated';
}

/** DHT, JPG and DAC: markers from 0xC0 to 0xCF that do not start a frame (ITU-T T.81 table B.1). */
const NON_FRAME_MARKERS: ReadonlySet<number> = new Set([0xc4, 0xc8, 0xcc]);
const START_OF_SCAN = 0xda;
const END_OF_IMAGE = 0xd9;

/** ITU-T T.81 section B.1. */
function readJpeg(bytes: Uint8Array): ReadResult {
  const view = viewOf(bytes);
  let at = 2;
  let size: { readonly width: number; readonly height: number } | null = null;
  for (;;) {
    if (at + 4 > bytes.length) return 'truncated';
    if (bytes[at] !== 0xff) return 'malformed';
    const marker = bytes[at + 1] as number;
    if (marker === 0xff) {
      // Fill byte.
      at++;
      continue;
    }
    if (marker === END_OF_IMAGE || marker < 0xc0 || (marker >= 0xd0 && marker <= 0xd8)) return 'malformed';
    const length = view.getUint16(at + 2);
    if (length < 2) return 'malformed';
    if (at + 2 + length > bytes.length) return 'truncated';
    if (marker === START_OF_SCAN) {
      if (size === null) return 'malformed';
      return lastEndOfImage(bytes) > at ? { ...size, isAnimated: false } : 'truncated';
    }
    if (marker <= 0xcf && !NON_FRAME_MARKERS.has(marker)) {
      if (length < 8 || size !== null) return 'malformed';
      size = { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    }
    at += 2 + length;
  }
}

/** Offset of the second byte of the last end-of-image marker; -1: none. */
function lastEndOfImage(bytes: Uint8Array): number {
  for (let at = bytes.length - 1; at > 0; at--) {
    if (bytes[at] === END_OF_IMAGE && bytes[at - 1] === 0xff) return at;
  }
  return -1;
}

/** GIF89a specification, sections 18 to 27. */
function readGif(bytes: Uint8Array): ReadResult {
  if (bytes.length < 13) return 'truncated';
  const view = viewOf(bytes);
  let width = view.getUint16(6, true);
  let height = view.getUint16(8, true);
  let at = 13 + colorTableBytes(bytes[10] as number);
  let frameCount = 0;
  while (at < bytes.length) {
    const block = bytes[at];
    if (block === 0x3b) return frameCount === 0 ? 'malformed' : { width, height, isAnimated: frameCount > 1 };
    if (block === 0x21) at = afterSubBlocks(bytes, at + 2);
    else if (block === 0x2c) {
      if (at + 11 > bytes.length) return 'truncated';
      frameCount++;
      width = Math.max(width, view.getUint16(at + 1, true) + view.getUint16(at + 5, true));
      height = Math.max(height, view.getUint16(at + 3, true) + view.getUint16(at + 7, true));
      at = afterSubBlocks(bytes, at + 10 + colorTableBytes(bytes[at + 9] as number) + 1);
    } else return 'malformed';
  }
  // Some encoders omit the trailer.
  return at === bytes.length && frameCount > 0 ? { width, height, isAnimated: frameCount > 1 } : 'truncated';
}

function colorTableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 0x07) + 1);
}

/** Skips a sequence of sub-blocks and returns the offset after the terminating empty block; beyond the end if there is none. */
function afterSubBlocks(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length) {
    const length = bytes[at] as number;
    at += 1 + length;
    if (length === 0) return at;
  }
  return bytes.length + 1;
}

/** RFC 9649 section 2. */
function readWebP(bytes: Uint8Array): ReadResult {
  const view = viewOf(bytes);
  if (bytes.length < 20) return 'truncated';
  const end = 8 + view.getUint32(4, true);
  if (end > bytes.length) return 'truncated';
  let width = 0;
  let height = 0;
  let isAnimated = false;
  let hasData = false;
  let chunkCount = 0;
  for (let at = 12; at + 8 <= end; ) {
    if (++chunkCount > MAX_CHUNKS) return 'malformed';
    const type = textAt(bytes, at, 4);
    const length = view.getUint32(at + 4, true);
    const next = at + 8 + length;
    if (next > end) return 'truncated';
    const size = webPSize(bytes, { type, at: at + 8, length });
    if (size === 'malformed') return size;
    if (size !== null) {
      width = Math.max(width, size.width);
      height = Math.max(height, size.height);
      hasData ||= type !== 'VP8X';
    }
    if (type === 'ANIM' || type === 'ANMF' || (type === 'VP8X' && ((bytes[at + 8] as number) & 0x02) !== 0)) isAnimated = true;
    // Chunks are padded to even lengths.
    at = next + (length % 2);
  }
  return hasData || isAnimated ? { width, height, isAnimated } : 'malformed';
}

interface Chunk {
  readonly type: string;
  readonly at: number;
  readonly length: number;
}

/** Image size in a chunk; null if the chunk type has no size. */
function webPSize(
  bytes: Uint8Array,
  { type, at, length }: Chunk,
): { readonly width: number; readonly height: number } | 'malformed' | null {
  const view = viewOf(bytes);
  switch (type) {
    case 'VP8 ':
      // RFC 6386 section 9.1: must be a key frame, with its start code.
      if (length < 10 || ((bytes[at] as number) & 1) !== 0 || !startsWith(bytes, at + 3, '\x9d\x01\x2a')) return 'malformed';
      return { width: view.getUint16(at + 6, true) & 0x3fff, height: view.getUint16(at + 8, true) & 0x3fff };
    case 'VP8L': {
      if (length < 5 || bytes[at] !== 0x2f) return 'malformed';
      const bits = view.getUint32(at + 1, true);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      if (length < 10) return 'malformed';
      return { width: 1 + (view.getUint32(at + 4, true) & 0xffffff), height: 1 + (view.getUint32(at + 6, true) >>> 8) };
    default:
      return null;
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function textAt(bytes: Uint8Array, at: number, length: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + length));
}

function startsWith(bytes: Uint8Array, at: number, text: string): boolean {
  return bytes.length >= at + text.length && textAt(bytes, at, text.length) === text;
}
