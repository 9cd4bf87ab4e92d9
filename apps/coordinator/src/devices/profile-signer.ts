/** Signs enrolment profiles as CMS SignedData (RFC 5652) with an RSA or ECDSA key, so that macOS shows them as verified. */
import { createHash, createPrivateKey, type KeyObject, sign, X509Certificate } from 'node:crypto';
import { concatBytes } from '@inference/protocol';
import { membersOf, readDer } from '../providers/verification/chain/der.js';

/** OBJECT IDENTIFIERs in DER. `rsaWithSha256` includes its parameter NULL. */
const OID = {
  data: '06092a864886f70d010701',
  signedData: '06092a864886f70d010702',
  contentType: '06092a864886f70d010903',
  messageDigest: '06092a864886f70d010904',
  signingTime: '06092a864886f70d010905',
  sha256: '0609608648016503040201',
  rsaWithSha256: '06092a864886f70d01010b0500',
  ecdsaWithSha256: '06082a8648ce3d040302',
} as const;

export type ProfileSigner = (profile: Uint8Array) => Uint8Array;

/**
 * Creates a signer from PEM texts: the certificate followed by its issuers, and the key. Throws if they do not match or have another type.
 */
export function profileSigner(certificatesPem: string, keyPem: string, now: () => number): ProfileSigner {
  const blocks = certificatesPem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const certificates = blocks.map((block) => new X509Certificate(block));
  const [own] = certificates;
  if (own === undefined) throw new Error('the file holds no certificate');
  const key = createPrivateKey(keyPem);
  if (!own.checkPrivateKey(key)) throw new Error('the key does not match the first certificate');
  const algorithm = algorithmOf(key);
  const ders = certificates.map((certificate) => new Uint8Array(certificate.raw));
  return (profile) => signedData(profile, { ders, key, algorithm, now: now() });
}

interface Signing {
  readonly ders: readonly Uint8Array[];
  readonly key: KeyObject;
  readonly algorithm: Uint8Array;
  readonly now: number;
}

function signedData(profile: Uint8Array, { ders, key, algorithm, now }: Signing): Uint8Array {
  const sha256 = sequence(hex(OID.sha256));
  const attributes = setMembers(
    sequence(hex(OID.contentType), set(hex(OID.data))),
    sequence(hex(OID.signingTime), set(utcTime(now))),
    sequence(hex(OID.messageDigest), set(octets(createHash('sha256').update(profile).digest()))),
  );
  // RFC 5652 section 5.4: the attributes are signed as a SET, but sent with an implicit tag.
  const signature = sign('sha256', element(0x31, attributes), key);
  const signer = sequence(
    // INTEGER 1, the version. Also below.
    hex('020101'),
    // Never empty: `profileSigner` checked that there is a certificate.
    issuerAndSerialNumber(ders[0] ?? new Uint8Array()),
    sha256,
    element(0xa0, attributes),
    algorithm,
    octets(signature),
  );
  const content = sequence(
    hex('020101'),
    set(sha256),
    sequence(hex(OID.data), element(0xa0, octets(profile))),
    element(0xa0, concatBytes(...ders)),
    set(signer),
  );
  return sequence(hex(OID.signedData), element(0xa0, content));
}

function algorithmOf(key: KeyObject): Uint8Array {
  if (key.asymmetricKeyType === 'rsa') return sequence(hex(OID.rsaWithSha256));
  if (key.asymmetricKeyType === 'ec') return sequence(hex(OID.ecdsaWithSha256));
  throw new Error('the key is neither RSA nor ECDSA');
}

/** Copies issuer and serial number. Order of a certificate's members: version, serial number, algorithm, issuer (RFC 5280 section 4.1). */
function issuerAndSerialNumber(der: Uint8Array): Uint8Array {
  const [signed] = membersOf(readDer(der));
  const [, serialNumber, , issuer] = signed === undefined ? [] : membersOf(signed);
  if (serialNumber === undefined || issuer === undefined) throw new Error('the certificate cannot be read');
  return sequence(issuer.bytes, serialNumber.bytes);
}

/** Encodes a UTCTime, which RFC 5652 section 11.3 requires for years before 2050. */
function utcTime(milliseconds: number): Uint8Array {
  const digits = new Date(milliseconds).toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return element(0x17, Buffer.from(`${digits}Z`, 'ascii'));
}

/** Joins the members of a DER SET, sorted by encoding (X.690 section 11.6). */
function setMembers(...members: readonly Uint8Array[]): Uint8Array {
  return concatBytes(...members.map((member) => Buffer.from(member)).sort(Buffer.compare));
}

const set = (member: Uint8Array): Uint8Array => element(0x31, member);
const sequence = (...members: readonly Uint8Array[]): Uint8Array => element(0x30, concatBytes(...members));
const octets = (bytes: Uint8Array): Uint8Array => element(0x04, bytes);
const hex = (digits: string): Uint8Array => new Uint8Array(Buffer.from(digits, 'hex'));

function element(tag: number, content: Uint8Array): Uint8Array {
  const { length } = content;
  if (length < 0x80) return concatBytes(new Uint8Array([tag, length]), content);
  const size = hex(length.toString(16).padStart(length > 0xffff ? 6 : length > 0xff ? 4 : 2, '0'));
  return concatBytes(new Uint8Array([tag, 0x80 | size.length]), size, content);
}
