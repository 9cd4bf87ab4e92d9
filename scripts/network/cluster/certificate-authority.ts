/** `CertificateAuthority`: issues TLS certificates for a cluster's NATS servers. */
// @peculiar/x509 registers its classes with Reflect metadata.
import 'reflect-metadata';
import { createPrivateKey, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 24 * 60 * 60_000;
const AUTHORITY_LIFETIME_MS = 10 * 365 * DAY_MS;
const SERVER_LIFETIME_MS = 2 * 365 * DAY_MS;
/** Certificates are valid from one hour before their creation, because clocks of other machines may be behind. */
const CLOCK_TOLERANCE_MS = 60 * 60_000;

export interface KeyAndCertificate {
  readonly key: string;
  readonly certificate: string;
}

export class CertificateAuthority {
  private constructor(
    readonly pem: KeyAndCertificate,
    private readonly key: webcrypto.CryptoKey,
    private readonly name: string,
  ) {}

  static async create(now: number): Promise<CertificateAuthority> {
    const keys = await generateKey();
    const name = 'CN=NATS servers of a coordinator cluster';
    const certificate = await X509CertificateGenerator.createSelfSigned(
      {
        name,
        keys,
        ...validity(now, AUTHORITY_LIFETIME_MS),
        signingAlgorithm: ALGORITHM,
        extensions: [
          new BasicConstraintsExtension(true, 0, true),
          new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        ],
      },
      webcrypto,
    );
    return new CertificateAuthority({ key: await exportKey(keys.privateKey), certificate: pem(certificate) }, keys.privateKey, name);
  }

  /** Loads a stored authority from PEM. Throws if key or certificate is invalid. */
  static async load(stored: KeyAndCertificate): Promise<CertificateAuthority> {
    const der = createPrivateKey(stored.key).export({ type: 'pkcs8', format: 'der' });
    const key = await webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
    return new CertificateAuthority(stored, key, new X509Certificate(stored.certificate).subject);
  }

  /** Certificate of one server, for TLS as a server to coordinators, and as server or client to other servers. */
  async issue(hosts: readonly string[], now: number): Promise<KeyAndCertificate> {
    const keys = await generateKey();
    const names = [...new Set(hosts)].map((host) => ({ type: isIP(host) === 0 ? ('dns' as const) : ('ip' as const), value: host }));
    const extensions: Extension[] = [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      new SubjectAlternativeNameExtension(names),
    ];
    const certificate = await X509CertificateGenerator.create(
      {
        subject: 'CN=NATS server',
        issuer: this.name,
        publicKey: keys.publicKey,
        signingKey: this.key,
        ...validity(now, SERVER_LIFETIME_MS),
        signingAlgorithm: ALGORITHM,
        extensions,
      },
      webcrypto,
    );
    return { key: await exportKey(keys.privateKey), certificate: pem(certificate) };
  }
}

function generateKey(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));
  return createPrivateKey({ key: der, type: 'pkcs8', format: 'der' }).export({ type: 'pkcs8', format: 'pem' }).toString();
}

function pem(certificate: X509Certificate): string {
  return `${certificate.toString('pem')}\n`;
}

function validity(now: number, lifetimeMs: number): { readonly notBefore: Date; readonly notAfter: Date } {
  return { notBefore: new Date(now - CLOCK_TOLERANCE_MS), notAfter: new Date(now + lifetimeMs) };
}
