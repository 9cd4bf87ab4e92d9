/** Parses untrusted property lists, in XML or binary encoding. Dictionaries become maps, so that untrusted keys reach no prototype. */
import { parseBuffer } from 'bplist-parser';
import { build, type PlistValue as LibraryValue, parse } from 'plist';
import { guardBinary } from './binary-guard.js';
import { PLIST_LIMITS, PlistError, type PlistRefusal, type PlistValue } from './value.js';
import { guardXml } from './xml-guard.js';

export type { PlistDict, PlistRefusal, PlistValue } from './value.js';

type ParsedPlist = { readonly ok: true; readonly value: PlistValue } | { readonly ok: false; readonly code: PlistRefusal };

/** Parses an XML (UTF-8) or binary property list. Never throws. */
export function parsePlist(bytes: Uint8Array): ParsedPlist {
  if (bytes.length > PLIST_LIMITS.bytes) return { ok: false, code: 'plist_too_large' };
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  try {
    return { ok: true, value: isBinary(buffer) ? parseBinary(buffer) : parseXml(buffer) };
  } catch (error) {
    // Other errors of the parser mean malformed input. Their messages may quote the input, so they are dropped.
    return { ok: false, code: error instanceof PlistError ? error.code : 'plist_malformed' };
  }
}

export function encodePlist(value: Readonly<Record<string, EncodablePlist>>): string {
  return build(value as LibraryValue);
}

export type EncodablePlist =
  | boolean
  | number
  | string
  | Uint8Array
  | readonly EncodablePlist[]
  | { readonly [key: string]: EncodablePlist | undefined };

function isBinary(buffer: Buffer): boolean {
  return buffer.subarray(0, 6).toString('latin1') === 'bplist';
}

function parseBinary(buffer: Buffer): PlistValue {
  guardBinary(buffer);
  return toValue(parseBuffer<unknown>(buffer)[0]);
}

function parseXml(buffer: Buffer): PlistValue {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(buffer);
  return toValue(parse(guardXml(text)));
}

function toValue(value: unknown): PlistValue {
  if (typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value;
  if (Array.isArray(value)) return value.map(toValue);
  if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
    return new Map(Object.entries(value).map(([key, member]) => [key, toValue(member)]));
  }
  throw new PlistError('plist_malformed');
}
