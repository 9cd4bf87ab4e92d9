/** Parses one certificate of a chain: raw parts by the strict DER reader, standard extensions by an X.509 library. */
import 'reflect-metadata';
import { equalBytes, fromHex } from '@inference/protocol';
import { p384 } from '@noble/curves/nist.js';
import { sha384 } from '@noble/hashes/sha2.js';
import { BasicConstraintsExtension, ExtendedKeyUsageExtension, KeyUsageFlags, KeyUsagesExtension, X509Certificate } from '@peculiar/x509';
import { DER_TAG, type DerValue, derChildren, readDer } from './der.js';

export interface Certificate {
  /** DER of the name, because path validation compares names byte by byte. */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  readonly commonName: string | null;
  /** Milliseconds. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** Uncompressed P-384 point, or null for a key of another kind. */
  readonly publicKey: Uint8Array | null;
  /** Whether the algorithms inside and outside the signed part are both ECDSA with SHA-384. */
  readonly ecdsaSha384: boolean;
  readonly signed: Uint8Array;
  /** DER. */
  readonly signature: Uint8Array;
  readonly extensions: readonly CertificateExtension[];
  /** Null: the extension is absent. */
  readonly basicConstraints: { readonly ca: boolean; readonly pathLength: number | null; readonly critical: boolean } | null;
  readonly keyUsage: {
    readonly digitalSignature: boolean;
    readonly keyCertSign: boolean;
    readonly critical: boolean;
    readonly shortest: boolean;
  } | null;
  readonly extendedKeyUsages: readonly string[] | null;
}

export interface CertificateExtension {
  readonly oid: string;
  readonly critical: boolean;
  /** Contents of the extension's OCTET STRING. */
  readonly value: Uint8Array;
}

const VERSION_3 = fromHex('a003020102');
const ECDSA_WITH_SHA384 = fromHex('300a06082a8648ce3d040303');
/** SubjectPublicKeyInfo of an uncompressed P-384 point, up to the point. */
const P384_KEY_PREFIX = fromHex('3076301006072a8648ce3d020106052b81040022036200');

/** The bytes are not an X.509 certificate. */
export class CertificateError extends Error {}

/** Parses a certificate. Throws DerError for malformed DER, {@link CertificateError} for DER that is not a version 3 certificate. */
export function readCertificate(der: Uint8Array): Certificate {
  const [tbs, algorithm, signatureBits, ...more] = derChildren(readDer(der));
  if (tbs === undefined || algorithm === undefined || signatureBits === undefined || more.length > 0) throw new CertificateError();
  const [version, serialNumber, innerAlgorithm, issuer, validity, subject, keyInfo] = derChildren(tbs);
  if (version === undefined || serialNumber === undefined || innerAlgorithm === undefined) throw new CertificateError();
  if (issuer === undefined || validity === undefined || subject === undefined || keyInfo === undefined) throw new CertificateError();
  if (!equalBytes(version.encoded, VERSION_3) || !isPositive(serialNumber)) throw new CertificateError();
  const [notBefore, notAfter] = derChildren(validity).map(timeOf);
  if (notBefore === undefined || notAfter === undefined) throw new CertificateError();
  const parsed = parse(der);
  return {
    issuer: issuer.encoded,
    subject: subject.encoded,
    commonName: onlyCommonName(parsed),
    notBefore,
    notAfter,
    publicKey: p384Point(keyInfo),
    ecdsaSha384: equalBytes(algorithm.encoded, ECDSA_WITH_SHA384) && equalBytes(innerAlgorithm.encoded, ECDSA_WITH_SHA384),
    signed: tbs.encoded,
    signature: wholeOctets(signatureBits),
    extensions: extensionsOf(tbs),
    ...standardExtensions(parsed),
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

function parse(der: Uint8Array): X509Certificate {
  try {
    const copy = new Uint8Array(der);
    return new X509Certificate(copy.buffer);
  } catch {
    throw new CertificateError();
  }
}

function onlyCommonName(parsed: X509Certificate): string | null {
  const [name, ...more] = parsed.subjectName.getField('CN');
  return name !== undefined && more.length === 0 ? name : null;
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
function extensionsOf(tbs: DerValue): CertificateExtension[] {
  // 0xa3: context tag [3] (RFC 5280 §4.1). 0x04: OCTET STRING.
  const list = derChildren(tbs).find(({ tag }) => tag === 0xa3);
  const extensions = list === undefined ? [] : derChildren(list).flatMap(derChildren);
  if (extensions.length === 0) throw new CertificateError();
  return extensions.map((extension) => {
    const [oid, second, third] = derChildren(extension);
    const value = third ?? second;
    if (oid === undefined || oid.tag !== DER_TAG.oid || value === undefined || value.tag !== 0x04) throw new CertificateError();
    // `critical` defaults to FALSE, and DER omits defaults.
    if (third !== undefined && (second?.tag !== DER_TAG.boolean || second.contents[0] !== 0xff)) throw new CertificateError();
    return { oid: oidText(oid.contents), critical: third !== undefined, value: value.contents };
  });
}

function standardExtensions(parsed: X509Certificate): Pick<Certificate, 'basicConstraints' | 'keyUsage' | 'extendedKeyUsages'> {
  const constraints = parsed.getExtension(BasicConstraintsExtension);
  const usage = parsed.getExtension(KeyUsagesExtension);
  const usageBits = usage === null ? null : new Uint8Array(usage.value);
  const extended = parsed.getExtension(ExtendedKeyUsageExtension);
  return {
    basicConstraints:
      constraints === null ? null : { ca: constraints.ca, pathLength: constraints.pathLength ?? null, critical: constraints.critical },
    keyUsage:
      usage === null
        ? null
        : {
            digitalSignature: (usage.usages & KeyUsageFlags.digitalSignature) !== 0,
            keyCertSign: (usage.usages & KeyUsageFlags.keyCertSign) !== 0,
            critical: usage.critical,
            shortest: usageBits !== null && isShortestBitList(usageBits),
          },
    extendedKeyUsages: extended === null ? null : extended.usages.map(String),
  };
}

/** DER writes a list of named bits without trailing zero bits (X.690 §11.2.2). */
function isShortestBitList(bits: Uint8Array): boolean {
  const unused = bits[2];
  const last = bits[bits.length - 1];
  return bits.length > 3 && unused !== undefined && last !== undefined && ((last >> unused) & 1) === 1;
}

function oidText(contents: Uint8Array): string {
  const parts: number[] = [];
  let part = 0;
  for (const octet of contents) {
    part = part * 128 + (octet & 0x7f);
    if (octet >= 0x80) continue;
    if (parts.length === 0) {
      const top = Math.min(2, Math.floor(part / 40));
      parts.push(top, part - 40 * top);
    } else parts.push(part);
    part = 0;
  }
  return parts.join('.');
}
