/** `SimulatedAuthority` issues device attestation certificates with the structure of Apple's: root, issuer, leaf. */
import { createHash, X509Certificate } from 'node:crypto';
import { fromHex, toBase64, toHex } from '@inference/protocol';
import {
  authorityKeyIdentifier,
  basicConstraints,
  type CertificateTemplate,
  EXTENSION_OID,
  ecdsaWith,
  encodeName,
  extendedKeyUsage,
  keyUsage,
  signCertificate,
  subjectKeyIdentifier,
  VERSION_3,
} from './certificate.js';
import { integer, time } from './der.js';
import { type AttestedDevice, deviceExtensions } from './device-extensions.js';
import { type P384Key, p384Key, p384KeyFrom, p384KeyInfo, type Random } from './key.js';

/** Apple's extended key usage for device attestation. */
export const DEVICE_ATTESTATION_PURPOSE = '1.2.840.113635.100.4.24';

const DAY_MS = 24 * 60 * 60_000;
export const LEAF_LIFETIME_MS = 91 * DAY_MS;
const AUTHORITY_LIFETIME_MS = 10 * 365 * DAY_MS;

const DEFAULT_NAMES = {
  root: 'Simulated Enterprise Attestation Root CA',
  issuer: 'Simulated Enterprise Attestation Sub CA 1',
  organization: 'Simulated Device Maker',
};
export type AuthorityNames = typeof DEFAULT_NAMES;

export interface AuthorityOptions {
  /** Creation time in milliseconds. */
  readonly now: number;
  readonly random: Random;
  readonly names?: Partial<AuthorityNames>;
}

export interface IssueOptions {
  /** Beginning of the certificate's validity, in milliseconds. */
  readonly now: number;
  readonly random: Random;
  readonly device: AttestedDevice;
  /** Freshness code, 32 bytes: the nonce of device management, or SHA-256 of an ACME token. */
  readonly freshness: Uint8Array;
  /** Whether the leaf names its purpose. Default: true. Apple's leaves do for device management, not for ACME. */
  readonly extendedKeyUsage?: boolean;
  /** Key that the leaf certifies. Default: a new key. */
  readonly leafKey?: P384Key;
  /** Modifies the leaf before signing; tests forge certificates with it. */
  readonly change?: (template: CertificateTemplate) => CertificateTemplate;
}

export interface IssuedChain {
  /** `[leaf, issuer]` in DER; the root is not sent. */
  readonly certificates: readonly [Uint8Array, Uint8Array];
  readonly leafKey: P384Key;
}

interface SavedAuthority {
  readonly v: 1;
  readonly kind: 'simulated-device-authority';
  readonly names: AuthorityNames;
  readonly root_key: string;
  readonly issuer_key: string;
  readonly root_certificate: string;
  readonly issuer_certificate: string;
}

export class SimulatedAuthority {
  private constructor(
    readonly names: AuthorityNames,
    readonly rootKey: P384Key,
    readonly issuerKey: P384Key,
    /** DER; self-signed. */
    readonly rootCertificate: Uint8Array,
    /** DER; signed by the root key. */
    readonly issuerCertificate: Uint8Array,
  ) {}

  static create({ now, random, names = {} }: AuthorityOptions): SimulatedAuthority {
    const parts = { names: { ...DEFAULT_NAMES, ...names }, rootKey: p384Key(random), issuerKey: p384Key(random) };
    const signer = { privateKey: parts.rootKey.privateKey, hash: 'sha384' } as const;
    const root = signCertificate(rootTemplate(parts, now, random), signer);
    const issuer = signCertificate(issuerTemplate(parts, now, random), signer);
    return new SimulatedAuthority(parts.names, parts.rootKey, parts.issuerKey, root, issuer);
  }

  /** Restores an authority from the output of {@link save}. Throws on text of another kind or version. */
  static load(text: string): SimulatedAuthority {
    const saved = JSON.parse(text) as SavedAuthority;
    if (saved.kind !== 'simulated-device-authority' || saved.v !== 1) throw new TypeError('not a saved simulated authority');
    const der = (certificate: string): Uint8Array => new Uint8Array(new X509Certificate(certificate).raw);
    return new SimulatedAuthority(
      saved.names,
      p384KeyFrom(fromHex(saved.root_key)),
      p384KeyFrom(fromHex(saved.issuer_key)),
      der(saved.root_certificate),
      der(saved.issuer_certificate),
    );
  }

  /** Serializes the authority with its private keys, which have no value outside the simulation. */
  save(): string {
    const saved: SavedAuthority = {
      v: 1,
      kind: 'simulated-device-authority',
      names: this.names,
      root_key: toHex(this.rootKey.scalar),
      issuer_key: toHex(this.issuerKey.scalar),
      root_certificate: pem(this.rootCertificate),
      issuer_certificate: pem(this.issuerCertificate),
    };
    return `${JSON.stringify(saved, null, 2)}\n`;
  }

  /** Root certificate, which a coordinator in simulation mode takes as its trust anchor. */
  get rootPem(): string {
    return pem(this.rootCertificate);
  }

  issue(options: IssueOptions): IssuedChain {
    const leafKey = options.leafKey ?? p384Key(options.random);
    const template = (options.change ?? ((same) => same))(this.leafTemplate(leafKey, options));
    const leaf = signCertificate(template, { privateKey: this.issuerKey.privateKey, hash: 'sha384' });
    return { certificates: [leaf, this.issuerCertificate], leafKey };
  }

  leafTemplate(leafKey: P384Key, { now, random, device, freshness, ...rest }: IssueOptions): CertificateTemplate {
    const purpose = { oid: EXTENSION_OID.extendedKeyUsage, critical: false, value: extendedKeyUsage(DEVICE_ATTESTATION_PURPOSE) };
    return {
      version: VERSION_3,
      serialNumber: serialNumber(random),
      signatureAlgorithm: ecdsaWith('sha384'),
      issuer: nameOf(this.names, 'issuer'),
      notBefore: time(now),
      notAfter: time(now + LEAF_LIFETIME_MS),
      subject: encodeName({
        commonName: createHash('sha256').update(leafKey.point).digest('hex'),
        organizationalUnit: 'AAA Certification',
        organization: this.names.organization,
        state: 'Simulation',
      }),
      publicKeyInfo: p384KeyInfo(leafKey.point),
      extensions: [
        { oid: EXTENSION_OID.basicConstraints, critical: true, value: basicConstraints(false) },
        {
          oid: EXTENSION_OID.keyUsage,
          critical: true,
          value: keyUsage('digitalSignature', 'nonRepudiation', 'keyEncipherment', 'dataEncipherment'),
        },
        ...(rest.extendedKeyUsage === false ? [] : [purpose]),
        ...deviceExtensions(device, freshness),
      ],
    };
  }

  /** Template of an issuer certificate, to be signed with the root key. `now` in milliseconds. */
  issuerTemplate(now: number, random: Random): CertificateTemplate {
    return issuerTemplate(this, now, random);
  }
}

type AuthorityParts = Pick<SimulatedAuthority, 'names' | 'rootKey' | 'issuerKey'>;

function issuerTemplate({ names, rootKey, issuerKey }: AuthorityParts, now: number, random: Random): CertificateTemplate {
  return {
    version: VERSION_3,
    serialNumber: serialNumber(random),
    signatureAlgorithm: ecdsaWith('sha384'),
    issuer: nameOf(names, 'root'),
    notBefore: time(now - DAY_MS),
    notAfter: time(now + AUTHORITY_LIFETIME_MS),
    subject: nameOf(names, 'issuer'),
    publicKeyInfo: p384KeyInfo(issuerKey.point),
    extensions: [
      { oid: EXTENSION_OID.basicConstraints, critical: true, value: basicConstraints(true, 0) },
      { oid: EXTENSION_OID.authorityKeyIdentifier, critical: false, value: authorityKeyIdentifier(keyIdentifier(rootKey)) },
      { oid: EXTENSION_OID.subjectKeyIdentifier, critical: false, value: subjectKeyIdentifier(keyIdentifier(issuerKey)) },
      { oid: EXTENSION_OID.keyUsage, critical: true, value: keyUsage('keyCertSign', 'cRLSign') },
    ],
  };
}

function rootTemplate({ names, rootKey }: AuthorityParts, now: number, random: Random): CertificateTemplate {
  return {
    ...issuerTemplate({ names, rootKey, issuerKey: rootKey }, now, random),
    notAfter: time(now + 2 * AUTHORITY_LIFETIME_MS),
    subject: nameOf(names, 'root'),
    extensions: [
      { oid: EXTENSION_OID.basicConstraints, critical: true, value: basicConstraints(true) },
      { oid: EXTENSION_OID.subjectKeyIdentifier, critical: false, value: subjectKeyIdentifier(keyIdentifier(rootKey)) },
      { oid: EXTENSION_OID.keyUsage, critical: true, value: keyUsage('keyCertSign', 'cRLSign') },
    ],
  };
}

function nameOf(names: AuthorityNames, which: 'root' | 'issuer'): Uint8Array {
  return encodeName({ commonName: names[which], organization: names.organization, country: 'ZZ' });
}

/** SHA-1 of the public key: method 1 of RFC 5280 section 4.2.1.2. */
function keyIdentifier(key: P384Key): Uint8Array {
  return new Uint8Array(createHash('sha1').update(key.point).digest());
}

function serialNumber(random: Random): Uint8Array {
  // The first byte is 0x40 to 0x7f: positive, not zero (RFC 5280 section 4.1.2.2).
  return integer(random(12).map((byte, index) => (index === 0 ? (byte & 0x3f) | 0x40 : byte)));
}

function pem(der: Uint8Array): string {
  return `-----BEGIN CERTIFICATE-----\n${toBase64(der).replace(/(.{64})(?!$)/g, '$1\n')}\n-----END CERTIFICATE-----\n`;
}
