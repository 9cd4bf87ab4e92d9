/** Strict DER reader (X.690). Refuses non-minimal encodings and trailing bytes, so that every parser reads the same certificate. */
import { fromUtf8 } from '@inference/protocol';

export interface DerValue {
  /** Identifier octet: class, constructed flag and tag number. */
  readonly tag: number;
  readonly contents: Uint8Array;
  /** Tag, length and contents. */
  readonly encoded: Uint8Array;
}

export class DerError extends Error {
  constructor(readonly problem: 'malformed' | 'trailing_bytes') {
    super(`DER: ${problem}`);
    this.name = 'DerError';
  }
}

export const DER_TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

const CONSTRUCTED = 0x20;
/** Maximum nesting depth; certificates need about ten levels. */
const MAX_DEPTH = 16;

/** Reads the bytes as one value and checks everything inside. Throws {@link DerError}. */
export function readDer(bytes: Uint8Array): DerValue {
  const value = readValue(bytes, 0);
  if (value.encoded.length !== bytes.length) throw new DerError('trailing_bytes');
  requireStrict(value, 0);
  return value;
}

/** Values inside a constructed value, in order. Throws {@link DerError}. */
export function derChildren(value: DerValue): DerValue[] {
  const children: DerValue[] = [];
  for (let at = 0; at < value.contents.length; ) {
    const child = readValue(value.contents, at);
    children.push(child);
    at += child.encoded.length;
  }
  return children;
}

function readValue(bytes: Uint8Array, start: number): DerValue {
  const tag = bytes[start];
  const first = bytes[start + 1];
  // Tag numbers above 30 take more octets; X.509 has none. Tag 0 ends indefinite lengths.
  if (tag === undefined || first === undefined || tag === 0 || (tag & 0x1f) === 0x1f) throw new DerError('malformed');
  let header = 2;
  let length = first;
  if (first >= 0x80) {
    const octets = first & 0x7f;
    // 0x80 is the indefinite length. Three octets reach 16 MB, far above the size limit of a chain.
    if (octets === 0 || octets > 3) throw new DerError('malformed');
    length = 0;
    for (let index = 0; index < octets; index++) length = length * 256 + (bytes[start + 2 + index] ?? Number.NaN);
    header += octets;
    const shortest = length < 0x80 ? 0 : Math.ceil(Math.log2(length + 1) / 8);
    if (Number.isNaN(length) || octets !== shortest) throw new DerError('malformed');
  }
  const end = start + header + length;
  if (end > bytes.length) throw new DerError('malformed');
  return { tag, contents: bytes.subarray(start + header, end), encoded: bytes.subarray(start, end) };
}

function requireStrict(value: DerValue, depth: number): void {
  if (depth > MAX_DEPTH) throw new DerError('malformed');
  if ((value.tag & CONSTRUCTED) === 0) {
    if (!isShortest(value)) throw new DerError('malformed');
    return;
  }
  const children = derChildren(value);
  for (const child of children) requireStrict(child, depth + 1);
  if (value.tag === DER_TAG.set && !isSorted(children)) throw new DerError('malformed');
}

function isShortest({ tag, contents }: DerValue): boolean {
  const [first, second] = contents;
  switch (tag) {
    case DER_TAG.boolean:
      return contents.length === 1 && (first === 0x00 || first === 0xff);
    case DER_TAG.integer:
      if (first === undefined) return false;
      return second === undefined || !((first === 0x00 && second < 0x80) || (first === 0xff && second >= 0x80));
    case DER_TAG.bitString:
      return first !== undefined && first <= 7 && (first === 0 || unusedBitsAreZero(contents, first));
    case DER_TAG.null:
      return contents.length === 0;
    case DER_TAG.oid:
      return isShortestOid(contents);
    case DER_TAG.utf8String:
    case DER_TAG.printableString:
      return isUtf8(contents);
    // The tags of sequences and sets without the constructed flag.
    case 0x10:
    case 0x11:
      return false;
    default:
      return true;
  }
}

function isUtf8(contents: Uint8Array): boolean {
  try {
    fromUtf8(contents);
    return true;
  } catch {
    return false;
  }
}

function unusedBitsAreZero(contents: Uint8Array, unused: number): boolean {
  const last = contents[contents.length - 1];
  return contents.length > 1 && last !== undefined && (last & ((1 << unused) - 1)) === 0;
}

/** Parts of an object identifier are base-128 numbers without leading zeros; the last octet ends a number. */
function isShortestOid(contents: Uint8Array): boolean {
  let isFirstOctet = true;
  for (const octet of contents) {
    if (isFirstOctet && octet === 0x80) return false;
    isFirstOctet = octet < 0x80;
  }
  return contents.length > 0 && isFirstOctet;
}

function isSorted(values: readonly DerValue[]): boolean {
  return values.every((value, index) => {
    const before = values[index - 1];
    return before === undefined || compare(before.encoded, value.encoded) <= 0;
  });
}

function compare(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let index = 0; index < shared; index++) {
    const difference = (a[index] as number) - (b[index] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
