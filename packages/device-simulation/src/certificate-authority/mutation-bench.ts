/**
 * Tools for tests of chain verifiers: `MutationBench` makes valid and forged certificate chains.
 *
 * A `ChainMutation` is one test case. mutations.ts lists them all.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { type ChainRejection, toBase64 } from '@inference/protocol';
import { SimulatedAuthority } from './authority.js';
import { type CertificateTemplate, type Extension, type Signer, signCertificate } from './certificate.js';
import type { AttestedDevice } from './device-extensions.js';
import { type P384Key, p384Key, type Random } from './key.js';

/** Input of a chain verifier. */
export interface ChainSample {
  /** base64 of DER, leaf first. */
  readonly chain: readonly string[];
  /** Claims of the machine about itself outside its certificates. */
  readonly claims: {
    readonly serialNumber: string;
    readonly provisioningUdid: string;
    readonly softwareUpdateDeviceId: string;
    readonly chipName: string;
  };
  /** Freshness code (32 bytes) that the verifier expects in the leaf. */
  readonly freshness: Uint8Array;
  /** The verifier's clock, in milliseconds. */
  readonly now: number;
}

/** One change of a valid sample. */
export interface ChainMutation {
  readonly name: string;
  /** Code with which verifiers must reject the sample; null where they must accept it. */
  readonly code: ChainRejection | null;
  make(bench: MutationBench): ChainSample;
}

export type Change = (template: CertificateTemplate) => CertificateTemplate;

/** Replaces parts of a template. */
export const replace =
  (parts: Partial<CertificateTemplate>): Change =>
  (template) => ({ ...template, ...parts });

/** Replaces each extension of a template by any number of others. */
export const eachExtension =
  (change: (extension: Extension) => readonly Extension[]): Change =>
  (template) => ({ ...template, extensions: template.extensions.flatMap(change) });
export const setExtension = (oid: string, value: Uint8Array): Change =>
  eachExtension((extension) => [extension.oid === oid ? { ...extension, value } : extension]);
export const dropExtension = (oid: string): Change => eachExtension((extension) => (extension.oid === oid ? [] : [extension]));

export function mutation(name: string, code: ChainMutation['code'], make: ChainMutation['make']): ChainMutation {
  return { name, code, make };
}

export function chainMutation(name: string, code: ChainMutation['code'], chainOf: (bench: MutationBench) => string[]): ChainMutation {
  return mutation(name, code, (bench) => bench.sample({ chain: chainOf(bench) }));
}

/** Chain whose leaf is changed before the genuine issuer signs it. */
export function changedLeaf(name: string, code: ChainMutation['code'], change: Change): ChainMutation {
  return chainMutation(name, code, (bench) => bench.chain(change));
}

/** Chain whose issuer is changed before the genuine root signs it. */
export function changedIssuer(name: string, code: ChainMutation['code'], change: Change, rootSigner: Partial<Signer> = {}): ChainMutation {
  return chainMutation(name, code, (bench) => bench.chainWithIssuer(change, rootSigner));
}

export const SAMPLE_DEVICE: AttestedDevice = {
  serialNumber: 'SM0A1B2C3D',
  provisioningUdid: '00006041-00112233AABBCCDC',
  softwareUpdateDeviceId: 'J575cAP',
  osVersion: '26.4.1',
  sepOsVersion: '26.4.1',
  llbVersion: '26.4.1',
  sipEnabled: true,
  secureBoot: 'Full Security',
  thirdPartyKextsAllowed: false,
};

const NOW = Date.UTC(2026, 5, 1);

/** Issues chains for {@link SAMPLE_DEVICE}. Mutations modify single steps of it. */
export class MutationBench {
  readonly now = NOW;
  readonly random: Random;
  readonly authority: SimulatedAuthority;
  /** Authority with the same names and other keys. */
  readonly impostor: SimulatedAuthority;
  readonly leafKey: P384Key;
  readonly freshness: Uint8Array;
  readonly #foreignKeys = new Map<string, ReturnType<typeof foreignKey>>();

  constructor(random: Random = randomBytes) {
    this.random = random;
    this.authority = SimulatedAuthority.create({ now: NOW - 1000, random });
    this.impostor = SimulatedAuthority.create({ now: NOW - 1000, random });
    this.leafKey = p384Key(random);
    this.freshness = random(32);
  }

  /** The valid sample, with members replaced. */
  sample(change: Partial<ChainSample> = {}): ChainSample {
    const { serialNumber, provisioningUdid, softwareUpdateDeviceId } = SAMPLE_DEVICE;
    return {
      chain: this.chain(),
      claims: { serialNumber, provisioningUdid, softwareUpdateDeviceId, chipName: 'Apple M4 Max' },
      freshness: this.freshness,
      now: NOW + 60_000,
      ...change,
    };
  }

  /** Chain whose leaf is changed before the genuine issuer signs it. base64, leaf first. */
  chain(change: Change = (same) => same, device: Partial<AttestedDevice> = {}): string[] {
    return encode(this.certificates(change, device));
  }

  /** The same chain in DER. */
  certificates(change: Change = (same) => same, device: Partial<AttestedDevice> = {}): Uint8Array[] {
    const { now, random, leafKey, freshness } = this;
    return [...this.authority.issue({ now, random, leafKey, freshness, device: { ...SAMPLE_DEVICE, ...device }, change }).certificates];
  }

  /** Chain whose issuer is changed before the genuine root, or `rootSigner`, signs it. */
  chainWithIssuer(change: Change, rootSigner: Partial<Signer> = {}): string[] {
    const { rootKey } = this.authority;
    const template = change(this.authority.issuerTemplate(NOW - 1000, this.random));
    const issuer = signCertificate(template, { privateKey: rootKey.privateKey, hash: 'sha384', ...rootSigner });
    return encode([this.certificates()[0] as Uint8Array, issuer]);
  }

  /** Chain with a leaf signed by another key or hash. */
  chainSignedBy(signer: Partial<Signer>, change: Change = (same) => same): string[] {
    const { issuerKey, issuerCertificate } = this.authority;
    const { now, random, freshness } = this;
    const template = change(this.authority.leafTemplate(this.leafKey, { now, random, freshness, device: SAMPLE_DEVICE }));
    return encode([signCertificate(template, { privateKey: issuerKey.privateKey, hash: 'sha384', ...signer }), issuerCertificate]);
  }

  /** Key of a type that verifiers reject in a chain. Created once per type. */
  foreignKey(kind: 'rsa' | 'P-256' | 'P-521'): ReturnType<typeof foreignKey> {
    const known = this.#foreignKeys.get(kind) ?? foreignKey(kind);
    this.#foreignKeys.set(kind, known);
    return known;
  }
}

/** The signed part (tbsCertificate) of a certificate. Outer and inner header have four bytes: tag, 0x82, two length bytes. */
export function signedPartOf(certificate: Uint8Array): Uint8Array {
  return certificate.subarray(4, 8 + (((certificate[6] as number) << 8) | (certificate[7] as number)));
}

function encode(certificates: readonly Uint8Array[]): string[] {
  return certificates.map(toBase64);
}

function foreignKey(kind: 'rsa' | 'P-256' | 'P-521') {
  const pair = kind === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ec', { namedCurve: kind });
  return { privateKey: pair.privateKey, info: new Uint8Array(pair.publicKey.export({ format: 'der', type: 'spki' })) };
}
