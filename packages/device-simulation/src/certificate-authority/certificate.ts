/** Signs X.509 certificates (RFC 5280 section 4.1) from encoded parts. Tests replace parts to forge certificates. */
import { type KeyObject, sign } from 'node:crypto';
import {
  bitString,
  boolean,
  explicit,
  integer,
  objectIdentifier,
  octetString,
  printableString,
  sequence,
  set,
  TAG,
  tlv,
  utf8String,
} from './der.js';

export const EXTENSION_OID = {
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
} as const;

export interface Extension {
  readonly oid: string;
  readonly critical: boolean;
  /** Content of extnValue, without the OCTET STRING wrapper. */
  readonly value: Uint8Array;
  /** Replaces the encoding of the whole extension, so that tests can build malformed ones. */
  readonly encoded?: Uint8Array;
}

export interface CertificateTemplate {
  /** Encoded `[0] version`. */
  readonly version: Uint8Array;
  /** Encoded INTEGER. */
  readonly serialNumber: Uint8Array;
  /** Encoded AlgorithmIdentifier inside the signed part. */
  readonly signatureAlgorithm: Uint8Array;
  /** Outer signatureAlgorithm. Default: same as the inner value. */
  readonly outerSignatureAlgorithm?: Uint8Array;
  readonly issuer: Uint8Array;
  readonly notBefore: Uint8Array;
  readonly notAfter: Uint8Array;
  readonly subject: Uint8Array;
  /** Encoded SubjectPublicKeyInfo. */
  readonly publicKeyInfo: Uint8Array;
  readonly extensions: readonly Extension[];
}

export interface Signer {
  readonly privateKey: KeyObject;
  readonly hash: 'sha1' | 'sha256' | 'sha384';
}

const ECDSA_OID = { sha1: '1.2.840.10045.4.1', sha256: '1.2.840.10045.4.3.2', sha384: '1.2.840.10045.4.3.3' } as const;

/** AlgorithmIdentifier of ECDSA with a hash, without parameters (RFC 5758 section 3.2). */
export function ecdsaWith(hash: Signer['hash']): Uint8Array {
  return sequence(objectIdentifier(ECDSA_OID[hash]));
}

export const VERSION_3 = explicit(0, integer(Uint8Array.of(2)));

export function signCertificate(template: CertificateTemplate, signer: Signer): Uint8Array {
  const signed = signedPart(template);
  const signature = new Uint8Array(sign(signer.hash, signed, signer.privateKey));
  return sequence(signed, template.outerSignatureAlgorithm ?? template.signatureAlgorithm, bitString(signature));
}

function signedPart(template: CertificateTemplate): Uint8Array {
  return sequence(
    template.version,
    template.serialNumber,
    template.signatureAlgorithm,
    template.issuer,
    sequence(template.notBefore, template.notAfter),
    template.subject,
    template.publicKeyInfo,
    explicit(3, sequence(...template.extensions.map(encodeExtension))),
  );
}

export function encodeExtension({ oid, critical, value, encoded }: Extension): Uint8Array {
  return encoded ?? sequence(objectIdentifier(oid), ...(critical ? [boolean(true)] : []), octetString(value));
}

/** Attributes of a Name, in Apple's order. */
interface NameParts {
  readonly commonName: string;
  readonly organizationalUnit?: string;
  readonly organization?: string;
  readonly state?: string;
  readonly country?: string;
}

/** RelativeDistinguishedName of one attribute. `value` is an encoded string. */
export function nameAttribute(oid: string, value: Uint8Array): Uint8Array {
  return set(sequence(objectIdentifier(oid), value));
}

export function encodeName(parts: NameParts): Uint8Array {
  return sequence(
    nameAttribute('2.5.4.3', utf8String(parts.commonName)),
    ...(parts.organizationalUnit === undefined ? [] : [nameAttribute('2.5.4.11', utf8String(parts.organizationalUnit))]),
    ...(parts.organization === undefined ? [] : [nameAttribute('2.5.4.10', utf8String(parts.organization))]),
    ...(parts.state === undefined ? [] : [nameAttribute('2.5.4.8', utf8String(parts.state))]),
    ...(parts.country === undefined ? [] : [nameAttribute('2.5.4.6', printableString(parts.country))]),
  );
}

/** Bit numbers of KeyUsage (RFC 5280 section 4.2.1.3). */
const KEY_USAGE_BITS = { digitalSignature: 0, nonRepudiation: 1, keyEncipherment: 2, dataEncipherment: 3, keyCertSign: 5, cRLSign: 6 };

/** KeyUsage without trailing zero bits (X.690 section 11.2.2). */
export function keyUsage(...usages: readonly (keyof typeof KEY_USAGE_BITS)[]): Uint8Array {
  const bits = usages.map((usage) => KEY_USAGE_BITS[usage]);
  const byte = bits.reduce((sum, bit) => sum | (0x80 >> bit), 0);
  return bitString(Uint8Array.of(byte), 7 - Math.max(...bits));
}

/** BasicConstraints; the default `cA FALSE` is omitted. */
export function basicConstraints(authority: boolean, pathLength: number | null = null): Uint8Array {
  return sequence(...(authority ? [boolean(true)] : []), ...(pathLength === null ? [] : [integer(Uint8Array.of(pathLength))]));
}

export function extendedKeyUsage(...purposes: readonly string[]): Uint8Array {
  return sequence(...purposes.map(objectIdentifier));
}

export const subjectKeyIdentifier = (hash: Uint8Array): Uint8Array => octetString(hash);
export const authorityKeyIdentifier = (hash: Uint8Array): Uint8Array => sequence(tlv(0x80, hash));
/** INTEGER of 0 to 127. */
export const derInteger = (value: number): Uint8Array => tlv(TAG.integer, Uint8Array.of(value));
