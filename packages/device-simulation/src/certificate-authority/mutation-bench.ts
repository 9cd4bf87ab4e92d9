/** `MutationBench` builds certificate chains with one change each, for tests of chain verifiers. Used by mutations.ts. */
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
  /** Claims of the machine outside its certificates. */
  readonly claims: {
    readonly serialNumber: string;
    readonly provisioningUdid: string;
    readonly softwareUpdateDeviceId: string;
    readonly chipName: string;
  };
  /** Freshness code (32 bytes) for this enclave key's nonce. */
  readonly freshness: Uint8Array;
  /** The verifier's clock, in milliseconds. */
  readonly now: number;
}

/** One change of a valid chain. Verifiers must reject with `code`; null: must accept. */
export interface ChainMutation {
  readonly name: string;
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

/** A mutation of any input of a verifier. */
export function sample(name: string, code: ChainMutation['code'], make: ChainMutation['make']): ChainMutation {
  return { name, code, make };
}

export function chain(name: string, code: ChainMutation['code'], chainOf: (bench: MutationBench) => string[]): ChainMutation {
  return sample(name, code, (bench) => bench.sample({ chain: chainOf(bench) }));
}

/** The genuine issuer signs a leaf after `change`. */
export function changedLeaf(name: string, code: ChainMutation['code'], change: Change): ChainMutation {
  return chain(name, code, (bench) => bench.chain(change));
}

/** The genuine root signs an issuer after `change`. */
export function changedIssuer(name: string, code: ChainMutation['code'], change: Change, rootSigner: Partial<Signer> = {}): ChainMutation {
  return chain(name, code, (bench) => bench.chainWithIssuer(change, rootSigner));
}

export const DEVICE: AttestedDevice = {
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

/** An authority, a key per certificate, and the issuing steps, which mutations modify. */
export class MutationBench {
  readonly now = NOW;
  readonly random: Random;
  readonly authority: SimulatedAuthority;
  /** Another authority with the same names. */
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
    const { serialNumber, provisioningUdid, softwareUpdateDeviceId } = DEVICE;
    return {
      chain: this.chain(),
      claims: { serialNumber, provisioningUdid, softwareUpdateDeviceId, chipName: 'Apple M4 Max' },
      freshness: this.freshness,
      now: NOW + 60_000,
      ...change,
    };
  }

  /** Chain with a leaf that the genuine issuer signs after `change`. */
  chain(change: Change = (same) => same, device: Partial<AttestedDevice> = {}): string[] {
    return encode(this.certificates(change, device));
  }

  certificates(change: Change = (same) => same, device: Partial<AttestedDevice> = {}): Uint8Array[] {
    const { now, random, leafKey, freshness } = this;
    return [...this.authority.issue({ now, random, leafKey, freshness, device: { ...DEVICE, ...device }, change }).certificates];
  }

  /** Chain with an issuer that the genuine root signs after `change`. */
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
    const template = change(this.authority.leafTemplate(this.leafKey, { now, random, freshness, device: DEVICE }));
    return encode([signCertificate(template, { privateKey: issuerKey.privateKey, hash: 'sha384', ...signer }), issuerCertificate]);
  }

  /** Key of a kind that chains must not contain. Created once per kind. */
  foreignKey(kind: 'rsa' | 'P-256' | 'P-521'): ReturnType<typeof foreignKey> {
    const known = this.#foreignKeys.get(kind) ?? foreignKey(kind);
    this.#foreignKeys.set(kind, known);
    return known;
  }
}

function encode(certificates: readonly Uint8Array[]): string[] {
  return certificates.map(toBase64);
}

function foreignKey(kind: 'rsa' | 'P-256' | 'P-521') {
  const pair = kind === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ec', { namedCurve: kind });
  return { privateKey: pair.privateKey, info: new Uint8Array(pair.publicKey.export({ format: 'der', type: 'spki' })) };
}
