/** Strict DER parser (X.690). Rejects indefinite or overlong lengths, multi-byte tags, non-minimal numbers and trailing bytes. */
import { fromUtf8 } from '@inference/protocol';

export class DerError extends Error {
  constructor(readonly problem: 'malformed' | 'trailing_bytes') {
    super(`DER: ${problem}`);
    this.name = 'DerError';
  }
}

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

export interface DerValue {
  readonly tag: number;
  readonly content: Uint8Array;
  /** Tag, length and content as received. */
  readonly bytes: Uint8Array;
}

const MAX_NESTING = 16;

/** Parses `bytes` as one value, and checks all nested values. Throws {@link DerError}. */
export function readDer(bytes: Uint8Array): DerValue {
  const value = readValue(bytes, 0);
  if (value.bytes.length !== bytes.length) throw new DerError('trailing_bytes');
  checkValue(value, 0);
  return value;
}

/** Members of a constructed value. Throws {@link DerError}. */
export function membersOf({ content }: DerValue): DerValue[] {
  const members: DerValue[] = [];
  for (let offset = 0; offset < content.length; ) {
    const member = readValue(content, offset);
    members.push(member);
    offset += member.bytes.length;
  }
  return members;
}

function readValue(bytes: Uint8Array, offset: number): DerValue {
  const tag = bytes[offset];
  const first = bytes[offset + 1];
  // Tags above 30 take several bytes and do not occur in certificates. Tag 0 terminates indefinite lengths.
  if (tag === undefined || first === undefined || tag === 0 || (tag & 0x1f) === 0x1f) throw new DerError('malformed');
  let start = offset + 2;
  let length = first;
  if (first >= 0x80) {
    const count = first & 0x7f;
    if (count === 0 || count > 3) throw new DerError('malformed');
    length = 0;
    for (const byte of bytes.subarray(start, start + count)) length = 256 * length + byte;
    start += count;
    // DER requires the shortest form of a length (X.690 section 10.1).
    if (length < 0x80 || length < 256 ** (count - 1)) throw new DerError('malformed');
  }
  const end = start + length;
  if (end > bytes.length) throw new DerError('malformed');
  return { tag, content: bytes.subarray(start, end), bytes: bytes.subarray(offset, end) };
}

function checkValue(value: DerValue, depth: number): void {
  if (depth > MAX_NESTING) throw new DerError('malformed');
  if ((value.tag & 0x20) !== 0) {
    const members = membersOf(value);
    for (const member of members) checkValue(member, depth + 1);
    if (value.tag === TAG.set && !isSorted(members)) throw new DerError('malformed');
    return;
  }
  if (!isStrict(value)) throw new DerError('malformed');
}

function isStrict({ tag, content }: DerValue): boolean {
  switch (tag) {
    case TAG.boolean:
      return content.length === 1 && (content[0] === 0 || content[0] === 0xff);
    case TAG.integer:
      return isShortestInteger(content);
    case TAG.bitString:
      return isBitString(content);
    case TAG.null:
      return content.length === 0;
    case TAG.objectIdentifier:
      return isObjectIdentifier(content);
    case TAG.utf8String:
    case TAG.printableString:
      return isUtf8(content);
    case TAG.sequence & 0x1f:
    case TAG.set & 0x1f:
      // SEQUENCE and SET are never primitive.
      return false;
    default:
      return true;
  }
}

/** Minimal INTEGER (X.690 section 8.3.2): the first nine bits are not all equal. */
function isShortestInteger(content: Uint8Array): boolean {
  const [first, second] = content;
  if (first === undefined) return false;
  if (second === undefined) return true;
  return !(first === 0 && second < 0x80) && !(first === 0xff && second >= 0x80);
}

/** BIT STRING with at most seven unused bits, all of them zero (X.690 sections 8.6.2 and 11.2.1). */
function isBitString(content: Uint8Array): boolean {
  const unused = content[0];
  if (unused === undefined || unused > 7) return false;
  if (content.length === 1) return unused === 0;
  return ((content.at(-1) as number) & ((1 << unused) - 1)) === 0;
}

/** OBJECT IDENTIFIER with minimal numbers (X.690 section 8.19.2). */
function isObjectIdentifier(content: Uint8Array): boolean {
  if (content.length === 0 || (content.at(-1) as number) >= 0x80) return false;
  return content.every((byte, index) => byte !== 0x80 || (index > 0 && (content[index - 1] as number) >= 0x80));
}

function isUtf8(content: Uint8Array): boolean {
  try {
    fromUtf8(content);
    return true;
  } catch {
    return false;
  }
}

/** SET OF with ascending members (X.690 section 11.6). */
function isSorted(members: readonly DerValue[]): boolean {
  return members.every((member, index) => index === 0 || Buffer.compare((members[index - 1] as DerValue).bytes, member.bytes) <= 0);
}
