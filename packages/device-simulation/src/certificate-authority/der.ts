/** DER writer (X.690) for certificates. Also writes invalid values, for tests of verifiers. */
import { concatBytes, utf8 } from '@inference/protocol';

export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** Encodes a value: tag, length in its shortest form, contents. */
export function tlv(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const content = concatBytes(...contents);
  return concatBytes(Uint8Array.of(tag), lengthBytes(content.length), content);
}

export const sequence = (...members: readonly Uint8Array[]): Uint8Array => tlv(TAG.sequence, ...members);
export const set = (...members: readonly Uint8Array[]): Uint8Array => tlv(TAG.set, ...members);
export const octetString = (bytes: Uint8Array): Uint8Array => tlv(TAG.octetString, bytes);
export const utf8String = (text: string): Uint8Array => tlv(TAG.utf8String, utf8(text));
export const printableString = (text: string): Uint8Array => tlv(TAG.printableString, utf8(text));
export const boolean = (value: boolean): Uint8Array => tlv(TAG.boolean, Uint8Array.of(value ? 0xff : 0));
/** Value in an explicit context tag `[n]`. */
export const explicit = (n: number, value: Uint8Array): Uint8Array => tlv(0xa0 | n, value);

/** Non-negative INTEGER from big-endian bytes, in the shortest form. */
export function integer(magnitude: Uint8Array): Uint8Array {
  const start = magnitude.findIndex((byte) => byte !== 0);
  const digits = start < 0 ? Uint8Array.of(0) : magnitude.subarray(start);
  return tlv(TAG.integer, (digits[0] as number) >= 0x80 ? Uint8Array.of(0) : new Uint8Array(), digits);
}

export function bitString(bytes: Uint8Array, unusedBits = 0): Uint8Array {
  return tlv(TAG.bitString, Uint8Array.of(unusedBits), bytes);
}

/** OBJECT IDENTIFIER of dotted numbers. */
export function objectIdentifier(dotted: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tlv(TAG.objectIdentifier, ...[40 * first + second, ...rest].map(base128));
}

/** UTCTime up to 2049, GeneralizedTime after (RFC 5280 section 4.1.2.5). Drops fractions of a second. */
export function time(milliseconds: number): Uint8Array {
  const digits = new Date(milliseconds)
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replace(/[-T:]/g, '');
  return digits < '2050' ? tlv(TAG.utcTime, utf8(digits.slice(2))) : tlv(TAG.generalizedTime, utf8(digits));
}

function lengthBytes(length: number): Uint8Array {
  if (length < 0x80) return Uint8Array.of(length);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Uint8Array.of(0x80 | bytes.length, ...bytes);
}

function base128(value: number): Uint8Array {
  const digits = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) digits.unshift(0x80 | (rest % 128));
  return Uint8Array.from(digits);
}
