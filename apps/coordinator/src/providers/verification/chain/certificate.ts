/** Parses X.509 v3 certificates (RFC 5280 section 4.1). Optional parts that device certificates do not need are rejected. */
import { fromUtf8 } from '@inference/protocol';
import { type DerValue, membersOf, readDer, TAG } from './der.js';

export interface Certificate {
  /** The signed part of the certificate (tbsCertificate). */
  readonly signedBytes: Uint8Array;
  /** Encoded AlgorithmIdentifiers, within and after the signed part. */
  readonly signatureAlgorithm: Uint8Array;
  readonly outerSignatureAlgorithm: Uint8Array;
  readonly signature: Uint8Array;
  /** Encoded Names. */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  /** Milliseconds since 1970. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** Encoded SubjectPublicKeyInfo. */
  readonly publicKeyInfo: Uint8Array;
  readonly extensions: readonly CertificateExtension[];
}

export interface CertificateExtension {
  readonly oid: string;
  readonly critical: boolean;
  /** Content of extnValue. */
  readonly value: Uint8Array;
}

/** Valid DER that is not a certificate of the expected structure. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError';
}

/** Parses a certificate. Throws DerError or {@link CertificateError}. */
export function parseCertificate(der: Uint8Array): Certificate {
  const [signed, outerAlgorithm, signature] = expectMembers(readDer(der), TAG.sequence, 3);
  const [version, serialNumber, algorithm, issuer, validity, subject, keyInfo, extensions] = expectMembers(signed, TAG.sequence, 8);
  const [versionNumber] = expectMembers(version, 0xa0, 1);
  if (versionNumber?.tag !== TAG.integer || versionNumber.content.length !== 1 || versionNumber.content[0] !== 2) throw broken('version');
  if (serialNumber?.tag !== TAG.integer || !isSerialNumber(serialNumber.content)) throw broken('serial number');
  const [notBefore, notAfter] = expectMembers(validity, TAG.sequence, 2);
  const [extensionList] = expectMembers(extensions, 0xa3, 1);
  if (extensionList?.tag !== TAG.sequence) throw broken('extensions');
  const list = membersOf(extensionList);
  if (list.length === 0) throw broken('extensions');
  return {
    signedBytes: (signed as DerValue).bytes,
    signatureAlgorithm: expectSequence(algorithm),
    outerSignatureAlgorithm: expectSequence(outerAlgorithm),
    signature: expectWholeBytes(signature),
    issuer: expectSequence(issuer),
    subject: expectSequence(subject),
    notBefore: readTime(notBefore),
    notAfter: readTime(notAfter),
    publicKeyInfo: expectSequence(keyInfo),
    extensions: list.map(readExtension),
  };
}

/** Values of an extension; more than one if the extension is repeated. */
export function extensionValues(certificate: Certificate, oid: string): Uint8Array[] {
  return certificate.extensions.filter((extension) => extension.oid === oid).map(({ value }) => value);
}

/**
 * Values of one attribute of a Name (X.501), for example `2.5.4.3` for the common name. Null for a value that is neither a UTF8String
 * nor a PrintableString. Throws {@link CertificateError}.
 */
export function nameAttributes(name: Uint8Array, oid: string): (string | null)[] {
  const texts: (string | null)[] = [];
  for (const relative of membersOf(readDer(name))) {
    if (relative.tag !== TAG.set) throw broken('name');
    for (const attribute of membersOf(relative)) {
      const [type, value] = membersOf(attribute);
      if (attribute.tag !== TAG.sequence || type === undefined || value === undefined) throw broken('name');
      if (dottedOf(type) !== oid) continue;
      texts.push(value.tag === TAG.utf8String || value.tag === TAG.printableString ? fromUtf8(value.content) : null);
    }
  }
  return texts;
}

/** Dotted form of an OBJECT IDENTIFIER. */
export function dottedOf({ tag, content }: DerValue): string {
  if (tag !== TAG.objectIdentifier) throw broken('object identifier');
  const numbers: number[] = [];
  let number = 0;
  for (const byte of content) {
    number = 128 * number + (byte & 0x7f);
    if (number > Number.MAX_SAFE_INTEGER / 128) throw broken('object identifier');
    if (byte >= 0x80) continue;
    numbers.push(number);
    number = 0;
  }
  const [first = 0, ...rest] = numbers;
  const arc = Math.min(2, Math.floor(first / 40));
  return [arc, first - 40 * arc, ...rest].join('.');
}

function readExtension(extension: DerValue): CertificateExtension {
  if (extension.tag !== TAG.sequence) throw broken('extension');
  const members = membersOf(extension);
  const [oid, critical] = members;
  const value = members.at(-1);
  if (oid === undefined || value?.tag !== TAG.octetString) throw broken('extension');
  if (members.length === 2) return { oid: dottedOf(oid), critical: false, value: value.content };
  // DER omits default values (X.690 section 11.5), so the optional third member must be TRUE.
  if (members.length !== 3 || critical?.tag !== TAG.boolean || critical.content[0] !== 0xff) throw broken('extension');
  return { oid: dottedOf(oid), critical: true, value: value.content };
}

/** A positive number of at most 20 bytes (RFC 5280 section 4.1.2.2). */
function isSerialNumber(content: Uint8Array): boolean {
  return content.length <= 20 && (content[0] as number) < 0x80 && content.some((byte) => byte !== 0);
}

/** UTCTime until 2049, then GeneralizedTime, in the form that RFC 5280 section 4.1.2.5 requires. */
function readTime(value: DerValue | undefined): number {
  if (value === undefined || (value.tag !== TAG.utcTime && value.tag !== TAG.generalizedTime)) throw broken('time');
  const text = String.fromCharCode(...value.content);
  const short = value.tag === TAG.utcTime;
  if (!(short ? /^\d{12}Z$/ : /^\d{14}Z$/).test(text)) throw broken('time');
  const digits = short ? (Number(text.slice(0, 2)) < 50 ? '20' : '19') + text : text;
  if (!short && digits < '2050') throw broken('time');
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(digits) as RegExpExecArray;
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const milliseconds = Date.parse(iso);
  // Rejects dates that do not exist, such as February 30.
  if (Number.isNaN(milliseconds) || new Date(milliseconds).toISOString() !== iso) throw broken('time');
  return milliseconds;
}

function expectMembers(value: DerValue | undefined, tag: number, count: number): DerValue[] {
  if (value?.tag !== tag) throw broken('structure');
  const members = membersOf(value);
  if (members.length !== count) throw broken('structure');
  return members;
}

function expectSequence(value: DerValue | undefined): Uint8Array {
  if (value?.tag !== TAG.sequence) throw broken('structure');
  return value.bytes;
}

function expectWholeBytes(value: DerValue | undefined): Uint8Array {
  if (value?.tag !== TAG.bitString || value.content[0] !== 0) throw broken('signature');
  return value.content.subarray(1);
}

function broken(part: string): CertificateError {
  return new CertificateError(`not a certificate: ${part}`);
}
