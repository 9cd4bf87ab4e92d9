/**
 * `guardBinary` validates a binary property list (`bplist00`) before the library parses it.
 *
 * Limits offsets, nesting, and the number and size of values, in which shared values count once per use.
 */
import { MAX_KEY_LENGTH, PLIST_LIMITS, PlistError } from './value.js';

const HEADER_BYTES = 8;
const TRAILER_BYTES = 32;

interface Layout {
  readonly bytes: Buffer;
  readonly referenceBytes: number;
  readonly offsets: readonly number[];
  /** End of the objects, where the offset table starts. */
  readonly end: number;
}

/** Throws {@link PlistError} unless the document is safe to parse. */
export function guardBinary(bytes: Buffer): void {
  const { layout, root } = readLayout(bytes);
  const remaining = { values: PLIST_LIMITS.values as number, bytes: PLIST_LIMITS.bytes as number };
  walk(layout, root, 1, remaining);
}

/** Reads the trailer: sizes of offsets and references, number of objects, reference to the root, and position of the offset table. */
function readLayout(bytes: Buffer): { readonly layout: Layout; readonly root: number } {
  requireWellFormed(bytes.length >= HEADER_BYTES + TRAILER_BYTES + 2);
  const trailer = bytes.length - TRAILER_BYTES;
  const offsetBytes = bytes.readUInt8(trailer + 6);
  const referenceBytes = bytes.readUInt8(trailer + 7);
  requireWellFormed(offsetBytes >= 1 && offsetBytes <= 4 && referenceBytes >= 1 && referenceBytes <= 4);
  const count = Number(bytes.readBigUInt64BE(trailer + 8));
  const root = Number(bytes.readBigUInt64BE(trailer + 16));
  const table = Number(bytes.readBigUInt64BE(trailer + 24));
  if (count > PLIST_LIMITS.values) throw new PlistError('plist_too_many_values');
  requireWellFormed(count >= 1 && root < count && table > HEADER_BYTES && table + count * offsetBytes <= trailer);
  const offsets: number[] = [];
  for (let i = 0; i < count; i++) {
    const offset = bytes.readUIntBE(table + i * offsetBytes, offsetBytes);
    requireWellFormed(offset >= HEADER_BYTES && offset < table);
    offsets.push(offset);
  }
  return { layout: { bytes, referenceBytes, offsets, end: table }, root };
}

/**
 * Checks a value and its members.
 *
 * High half of the marker: 0 boolean, 1 integer, 2 real, 3 date, 4 data, 5 ASCII string, 6 UTF-16 string, 10 array, 13 dictionary.
 */
function walk(layout: Layout, reference: number, depth: number, remaining: { values: number; bytes: number }): void {
  if (depth > PLIST_LIMITS.depth) throw new PlistError('plist_too_deep');
  if (--remaining.values < 0) throw new PlistError('plist_too_many_values');
  const { bytes, end } = layout;
  const at = offsetOf(layout, reference);
  const marker = bytes.readUInt8(at);
  const low = marker & 0x0f;
  switch (marker >> 4) {
    case 0x0:
      requireWellFormed(marker === 0x08 || marker === 0x09);
      return;
    case 0x1:
      requireWellFormed(low <= 3 && at + 1 + (1 << low) <= end);
      return;
    case 0x2:
      requireWellFormed((low === 2 || low === 3) && at + 1 + (1 << low) <= end);
      return;
    case 0x3:
      requireWellFormed(low === 3 && at + 9 <= end);
      return;
    case 0x4:
    case 0x5:
      spendBytes(remaining, readSize(layout, at, 1).length);
      return;
    case 0x6:
      spendBytes(remaining, 2 * readSize(layout, at, 2).length);
      return;
    case 0xa: {
      const { start, length } = readSize(layout, at, layout.referenceBytes);
      for (let i = 0; i < length; i++) walk(layout, referenceAt(layout, start, i), depth + 1, remaining);
      return;
    }
    case 0xd: {
      const { start, length } = readSize(layout, at, 2 * layout.referenceBytes);
      const keys = new Set<string>();
      for (let i = 0; i < length; i++) {
        const key = keyOf(layout, referenceAt(layout, start, i));
        if (keys.has(key)) throw new PlistError('plist_duplicate_key');
        keys.add(key);
        if (--remaining.values < 0) throw new PlistError('plist_too_many_values');
        walk(layout, referenceAt(layout, start, length + i), depth + 1, remaining);
      }
      return;
    }
    default:
      throw new PlistError('plist_malformed');
  }
}

/** Reads the start and length of a value's content. `unit`: bytes per element. */
function readSize(layout: Layout, at: number, unit: number): { readonly start: number; readonly length: number } {
  const { bytes, end } = layout;
  let length = bytes.readUInt8(at) & 0x0f;
  let start = at + 1;
  if (length === 0x0f) {
    requireWellFormed(start < end);
    const marker = bytes.readUInt8(start);
    const lengthBytes = 1 << (marker & 0x0f);
    requireWellFormed(marker >> 4 === 1 && lengthBytes <= 4 && start + 1 + lengthBytes <= end);
    length = bytes.readUIntBE(start + 1, lengthBytes);
    start += 1 + lengthBytes;
  }
  requireWellFormed(start + length * unit <= end);
  return { start, length };
}

/** Reads a key. Device reports have plain ASCII keys only. */
function keyOf(layout: Layout, reference: number): string {
  const at = offsetOf(layout, reference);
  requireWellFormed(layout.bytes.readUInt8(at) >> 4 === 0x5);
  const { start, length } = readSize(layout, at, 1);
  requireWellFormed(length <= MAX_KEY_LENGTH);
  const key = layout.bytes.toString('latin1', start, start + length);
  requireWellFormed(/^[\x20-\x7e]*$/.test(key) && key !== '__proto__');
  return key;
}

function referenceAt(layout: Layout, start: number, index: number): number {
  return layout.bytes.readUIntBE(start + index * layout.referenceBytes, layout.referenceBytes);
}

function offsetOf(layout: Layout, reference: number): number {
  const offset = layout.offsets[reference];
  if (offset === undefined) throw new PlistError('plist_malformed');
  return offset;
}

function spendBytes(remaining: { bytes: number }, bytes: number): void {
  remaining.bytes -= bytes;
  if (remaining.bytes < 0) throw new PlistError('plist_too_large');
}

function requireWellFormed(holds: boolean): void {
  if (!holds) throw new PlistError('plist_malformed');
}
