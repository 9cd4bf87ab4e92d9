/** Parses one certificate of a chain: raw parts by the strict DER reader, values of standard extensions by an X.509 library. */
import 'reflect-metadata';
import { equalBytes, fromHex, fromUtf8 } from '@inference/protocol';
import { p384 } from '@noble/curves/nist.js';
import { sha384 } from '@noble/hashes/sha2.js';
import { BasicConstraintsExtension, ExtendedKeyUsageExtension, KeyUsageFlags, KeyUsagesExtension, X509Certificate } from '@peculiar/x509';
import { DER_TAG, type DerValue, derChildren, readDer } from './der.js';

export interface Certificate {
  /** DER of the name, because path validation compares names byte by byte. */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  readonly commonName: string | null;
  /** Milliseconds since 1970. */
  readonly notBefore: number;
  /** Milliseconds since 1970. */
  readonly notAfter: number;
  /** Uncompressed P-384 point, or null for a key of another kind. */
  readonly publicKey: Uint8Array | null;
  /** Whether the algorithms inside and outside the signed part are both ECDSA with SHA-384. */
  readonly ecdsaSha384: boolean;
  /** The signed part (tbsCertificate) in DER. */
  readonly signed: Uint8Array;
  /** ECDSA signature in DER. */
  readonly signature: Uint8Array;
  readonly extensions: readonly CertificateExtension[];
  // Values of standard extensions. Null: absent. `malformed`: anything but the one DER encoding of a value.
  readonly basicConstraints: { readonly ca: boolean; readonly pathLength: number | null; readonly critical: boolean } | 'malformed' | null;
  readonly keyUsage: { readonly digitalSignature: boolean; readonly keyCertSign: boolean; readonly critical: boolean } | 'malformed' | null;
  readonly extendedKeyUsages: readonly string[] | 'malformed' | null;
}

export interface CertificateExtension {
  readonly oid: string;
  readonly critical: boolean;
  /** Contents of the extension's OCTET STRING. */
  readonly value: Uint8Array;
  /** DER of the whole extension. */
  readonly encoded: Uint8Array;
}

const VERSION_3 = fromHex('a003020102');
const ECDSA_WITH_SHA384 = fromHex('300a06082a8648ce3d040303');
const COMMON_NAME = '2.5.4.3';
export const CONSTRAINTS = '2.5.29.19';
export const KEY_USAGE = '2.5.29.15';
export const EXTENDED_KEY_USAGE = '2.5.29.37';
/** SubjectPublicKeyInfo of an uncompressed P-384 point, up to the point. */
const P384_KEY_PREFIX = fromHex('3076301006072a8648ce3d020106052b81040022036200');

/** The bytes are not an X.509 certificate. */
export class CertificateError extends Error {}

/** Parses a certificate. Throws DerError for malformed DER, {@link CertificateError} for DER that is not a version 3 certificate. */
export function readCertificate(der: Uint8Array): Certificate {
  const [tbs, algorithm, signatureBits, ...more] = derChildren(readDer(der));
  if (tbs === undefined || algorithm === undefined || signatureBits === undefined || more.length > 0) throw new CertificateError();
  // Certificates with the optional unique identifiers (RFC 5280 §4.1.2.8) are rejected: device certificates have none.
  const [version, serialNumber, innerAlgorithm, issuer, validity, subject, keyInfo, extensionList, ...others] = derChildren(tbs);
  if (version === undefined || serialNumber === undefined || innerAlgorithm === undefined) throw new CertificateError();
  if (issuer === undefined || validity === undefined || subject === undefined || keyInfo === undefined) throw new CertificateError();
  if (extensionList === undefined || others.length > 0) throw new CertificateError();
  if (!equalBytes(version.encoded, VERSION_3) || !isPositive(serialNumber)) throw new CertificateError();
  const [notBefore, notAfter] = derChildren(validity).map(timeOf);
  if (notBefore === undefined || notAfter === undefined) throw new CertificateError();
  requireX509(der);
  const extensions = extensionsOf(extensionList);
  return {
    issuer: issuer.encoded,
    subject: subject.encoded,
    commonName: onlyCommonName(subject),
    notBefore,
    notAfter,
    publicKey: p384Point(keyInfo),
    ecdsaSha384: equalBytes(algorithm.encoded, ECDSA_WITH_SHA384) && equalBytes(innerAlgorithm.encoded, ECDSA_WITH_SHA384),
    signed: tbs.encoded,
    signature: wholeOctets(signatureBits),
    extensions,
    ...standardExtensions(extensions),
  };
}

/** Whether this P-384 key signed the certificate. Never throws. */
export function isSignedBy(certificate: Certificate, publicKey: Uint8Array): boolean {
  try {
    return p384.verify(certificate.signature, sha384(certificate.signed), publicKey, { prehash: false, lowS: false, format: 'der' });
  } catch {
    // The signature is not strict DER, or one of its numbers is out of range.
    return false;
  }
}

/** Requires that the library, too, reads the bytes as a certificate. */
function requireX509(der: Uint8Array): void {
  try {
    new X509Certificate(bufferOf(der));
  } catch {
    throw new CertificateError();
  }
}

function bufferOf(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

/** The subject's only common name, a UTF8String or PrintableString. Null for none, several, or another type of string. */
function onlyCommonName(subject: DerValue): string | null {
  const attributes = derChildren(subject).flatMap(derChildren).map(derChildren);
  const [name, ...more] = attributes.filter(([type]) => type?.tag === DER_TAG.oid && oidText(type.contents) === COMMON_NAME);
  const value = name?.[1];
  if (value === undefined || more.length > 0 || (value.tag !== DER_TAG.utf8String && value.tag !== DER_TAG.printableString)) return null;
  return fromUtf8(value.contents);
}

/** Serial numbers are positive and have at most 20 octets (RFC 5280 §4.1.2.2). */
function isPositive({ tag, contents }: DerValue): boolean {
  const [first] = contents;
  return tag === DER_TAG.integer && first !== undefined && first < 0x80 && contents.length <= 20 && contents.some((octet) => octet !== 0);
}

/** UTCTime up to 2049 and GeneralizedTime after, in whole seconds of Zulu time (RFC 5280 §4.1.2.5). Returns milliseconds. */
function timeOf({ tag, contents }: DerValue): number {
  const text = String.fromCharCode(...contents);
  const form = tag === DER_TAG.utcTime ? /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/ : /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/;
  const [, year = '', ...rest] = form.exec(text) ?? [];
  if (rest.length !== 5 || (tag !== DER_TAG.utcTime && tag !== DER_TAG.generalizedTime)) throw new CertificateError();
  const century = tag === DER_TAG.generalizedTime ? '' : Number(year) < 50 ? '20' : '19';
  const [month, day, hour, minute, second] = rest;
  const iso = `${century}${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const time = Date.parse(iso);
  // `Date.parse` would accept 31 February as a day of March.
  if (Number.isNaN(time) || new Date(time).toISOString() !== iso) throw new CertificateError();
  if (tag === DER_TAG.generalizedTime && Number(year) < 2050) throw new CertificateError();
  return time;
}

function p384Point(keyInfo: DerValue): Uint8Array | null {
  const { encoded } = keyInfo;
  if (!equalBytes(encoded.subarray(0, P384_KEY_PREFIX.length), P384_KEY_PREFIX)) return null;
  const point = encoded.subarray(P384_KEY_PREFIX.length);
  if (point.length !== 97 || point[0] !== 0x04) return null;
  try {
    p384.Point.fromBytes(point).assertValidity();
    return point;
  } catch {
    return null;
  }
}

function wholeOctets({ tag, contents }: DerValue): Uint8Array {
  if (tag !== DER_TAG.bitString || contents[0] !== 0) throw new CertificateError();
  return contents.subarray(1);
}

/** Parses extensions from the DER, not with the library, so that duplicates and malformed values stay visible. */
function extensionsOf(tagged: DerValue): CertificateExtension[] {
  // 0xa3: context tag [3] (RFC 5280 §4.1). 0x04: OCTET STRING.
  const [list, ...more] = tagged.tag === 0xa3 ? derChildren(tagged) : [];
  const extensions = list?.tag === DER_TAG.sequence && more.length === 0 ? derChildren(list) : [];
  if (extensions.length === 0) throw new CertificateError();
  return extensions.map((extension) => {
    const [oid, second, third, ...others] = derChildren(extension);
    const value = third ?? second;
    if (oid === undefined || oid.tag !== DER_TAG.oid || value === undefined || value.tag !== 0x04) throw new CertificateError();
    // `critical` defaults to FALSE, and DER omits defaults.
    if (third !== undefined && (second?.tag !== DER_TAG.boolean || second.contents[0] !== 0xff)) throw new CertificateError();
    if (others.length > 0) throw new CertificateError();
    return { oid: oidText(oid.contents), critical: third !== undefined, value: value.contents, encoded: extension.encoded };
  });
}

function standardExtensions(
  extensions: readonly CertificateExtension[],
): Pick<Certificate, 'basicConstraints' | 'keyUsage' | 'extendedKeyUsages'> {
  return {
    basicConstraints: parsedExtension(extensions, CONSTRAINTS, basicConstraintsOf),
    keyUsage: parsedExtension(extensions, KEY_USAGE, keyUsageOf),
    extendedKeyUsages: parsedExtension(extensions, EXTENDED_KEY_USAGE, extendedKeyUsagesOf),
  };
}

/** Null: the extension is absent. `parse` throws, or returns null, for a malformed value. */
function parsedExtension<Value>(
  extensions: readonly CertificateExtension[],
  oid: string,
  parse: (extension: CertificateExtension) => Value | null,
): Value | 'malformed' | null {
  const extension = extensions.find((candidate) => candidate.oid === oid);
  if (extension === undefined) return null;
  try {
    return parse(extension) ?? 'malformed';
  } catch {
    return 'malformed';
  }
}

/** The library tolerates BER, so its own encoding of the same value must give the same bytes. */
function isEncodedAs(extension: CertificateExtension, again: { readonly rawData: ArrayBuffer }): boolean {
  return equalBytes(extension.encoded, new Uint8Array(again.rawData));
}

function basicConstraintsOf(extension: CertificateExtension) {
  const { ca, pathLength, critical } = new BasicConstraintsExtension(bufferOf(extension.encoded));
  // Only an authority has a path length (RFC 5280 §4.2.1.9).
  if (!isEncodedAs(extension, new BasicConstraintsExtension(ca, pathLength, critical)) || (!ca && pathLength !== undefined)) return null;
  return { ca, pathLength: pathLength ?? null, critical };
}

function keyUsageOf(extension: CertificateExtension) {
  const { usages, critical } = new KeyUsagesExtension(bufferOf(extension.encoded));
  if (!isShortestBitList(extension.value)) return null;
  return {
    digitalSignature: (usages & KeyUsageFlags.digitalSignature) !== 0,
    keyCertSign: (usages & KeyUsageFlags.keyCertSign) !== 0,
    critical,
  };
}

function extendedKeyUsagesOf(extension: CertificateExtension) {
  const { usages, critical } = new ExtendedKeyUsageExtension(bufferOf(extension.encoded));
  return isEncodedAs(extension, new ExtendedKeyUsageExtension(usages, critical)) ? usages.map(String) : null;
}

/** DER writes a list of named bits without trailing zero bits (X.690 §11.2.2). The nine bits of a key usage take two octets. */
function isShortestBitList(bits: Uint8Array): boolean {
  const [tag, length, unused, ...octets] = bits;
  const last = octets.at(-1);
  if (tag !== DER_TAG.bitString || length !== bits.length - 2 || unused === undefined || last === undefined) return false;
  return octets.length <= 2 && ((last >> unused) & 1) === 1;
}

function oidText(contents: Uint8Array): string {
  const parts: number[] = [];
  let part = 0;
  for (const octet of contents) {
    part = part * 128 + (octet & 0x7f);
    if (part > Number.MAX_SAFE_INTEGER / 128) throw new CertificateError();
    if (octet >= 0x80) continue;
    if (parts.length === 0) {
      const top = Math.min(2, Math.floor(part / 40));
      parts.push(top, part - 40 * top);
    } else parts.push(part);
    part = 0;
  }
  return parts.join('.');
}
