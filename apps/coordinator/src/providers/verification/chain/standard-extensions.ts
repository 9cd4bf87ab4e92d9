/** Parses the standard certificate extensions (RFC 5280 section 4.2.1) of device certificate chains. Accepts DER only. */
import { dottedOf } from './certificate.js';
import { type DerValue, membersOf, readDer, TAG } from './der.js';

/** OIDs of the extensions that this file parses. */
export const STANDARD_EXTENSION_OIDS = { basicConstraints: '2.5.29.19', keyUsage: '2.5.29.15', extendedKeyUsage: '2.5.29.37' } as const;

/** Extended key usage of device attestation certificates. */
export const DEVICE_ATTESTATION_PURPOSE = '1.2.840.113635.100.4.24';

export interface BasicConstraints {
  readonly isAuthority: boolean;
  readonly pathLength: number | null;
}

/** Null if the value is not BasicConstraints in DER. */
export function basicConstraints(value: Uint8Array): BasicConstraints | null {
  const members = membersIn(value);
  if (members === null) return null;
  const [authority, pathLength] = members;
  if (authority === undefined) return { isAuthority: false, pathLength: null };
  // DER omits FALSE, because it is the default.
  if (authority.tag !== TAG.boolean || authority.content[0] !== 0xff || members.length > 2) return null;
  if (pathLength === undefined) return { isAuthority: true, pathLength: null };
  if (pathLength.tag !== TAG.integer || pathLength.content.length !== 1 || (pathLength.content[0] as number) > 0x7f) return null;
  return { isAuthority: true, pathLength: pathLength.content[0] as number };
}

export const KEY_USAGE_BIT = { digitalSignature: 0, keyCertSign: 5, crlSign: 6 } as const;

/** Numbers of the set bits. Null if the value is not a named bit list in DER (X.690 section 11.2.2). */
export function keyUsageBits(value: Uint8Array): ReadonlySet<number> | null {
  const list = valueIn(value);
  if (list?.tag !== TAG.bitString) return null;
  const [unused = 0, ...bytes] = list.content;
  const last = bytes.at(-1);
  // DER omits trailing zero bits, so the last bit must be set.
  if (last === undefined || bytes.length > 2 || (last & (1 << unused)) === 0) return null;
  const bits = new Set<number>();
  for (let bit = 0; bit < 8 * bytes.length; bit++) if (((bytes[bit >> 3] as number) & (0x80 >> (bit & 7))) !== 0) bits.add(bit);
  return bits;
}

/** OIDs of an ExtendedKeyUsage; empty if malformed. */
export function keyPurposes(value: Uint8Array): string[] {
  const members = membersIn(value) ?? [];
  return members.every(({ tag }) => tag === TAG.objectIdentifier) ? members.map(dottedOf) : [];
}

function membersIn(value: Uint8Array): DerValue[] | null {
  const list = valueIn(value);
  return list?.tag === TAG.sequence ? membersOf(list) : null;
}

function valueIn(value: Uint8Array): DerValue | null {
  try {
    return readDer(value);
  } catch {
    return null;
  }
}
