/**
 * Verifies the certificate chain of a device (Apple's Managed Device Attestation).
 *
 * The freshness code commits to the enclave key, but does not prove that this machine holds the key.
 *
 * Independent of the coordinator's implementation, so that outsiders do not inherit its bugs (docs/decisions/0010).
 */
import { type ChainRejection, equalBytes, fromBase64 } from '@inference/protocol';
import { sha256Hex } from '../digest.js';
import { APPLE_ENTERPRISE_ATTESTATION_ROOT, type TrustAnchor } from './anchor.js';
import {
  type Certificate,
  CertificateError,
  CONSTRAINTS,
  EXTENDED_KEY_USAGE,
  isSignedBy,
  KEY_USAGE,
  readCertificate,
} from './certificate.js';
import { DerError } from './der.js';
import { chipMatchesUdid, type DeviceFacts, readDeviceFacts } from './device-facts.js';

/** Expectations of the chain. An absent member is not compared. */
export interface ExpectedDevice {
  readonly serial?: string;
  readonly udid?: string;
  readonly board?: string;
  /** Chip claimed by the machine, for example `Apple M4 Max`. */
  readonly chip?: string;
  /** Freshness codes bound to the enclave key. The leaf must contain one of the codes. */
  readonly freshness?: readonly Uint8Array[];
  /** Maximum age of the leaf, in milliseconds. */
  readonly maxAgeMs?: number;
}

export type ChainStep = 'encoding' | 'path' | 'anchor' | 'extensions' | 'device' | 'protections' | 'freshness' | 'age';

export type DeviceChainVerdict =
  | { readonly ok: true; readonly facts: DeviceFacts; readonly steps: readonly ChainStep[] }
  | {
      readonly ok: false;
      readonly code: ChainRejection;
      /** Steps that passed before the rejection. */
      readonly steps: readonly ChainStep[];
      /** Facts in the leaf, if parsed before the rejection. Not verified. */
      readonly facts: DeviceFacts | null;
    };

/** Leaf and issuer together, in bytes of DER. Real chains have about 1,600. */
const MAX_BYTES = 16_384;
const DEVICE_ATTESTATION_USAGE = '1.2.840.113635.100.4.24';
/** Extensions that may be critical, because their values are checked here. */
const SUPPORTED_CRITICAL = new Set([CONSTRAINTS, KEY_USAGE, EXTENDED_KEY_USAGE]);

class ChainRejected extends Error {
  constructor(readonly code: ChainRejection) {
    super(code);
  }
}

/**
 * Facts of a valid chain, or the first reason for rejecting it. Never throws for an invalid chain.
 *
 * @param chain Leaf and issuer, each in base64 of DER.
 * @param now Milliseconds since 1970.
 */
export function verifyDeviceChain(
  chain: readonly string[],
  expected: ExpectedDevice,
  now: number,
  anchor: TrustAnchor = APPLE_ENTERPRISE_ATTESTATION_ROOT,
): DeviceChainVerdict {
  const steps: ChainStep[] = [];
  let facts: DeviceFacts | null = null;
  try {
    const { leaf, issuer } = decode(chain);
    steps.push('encoding');
    checkPath(leaf, issuer, now);
    steps.push('path');
    rejectUnless(equalBytes(issuer.issuer, anchor.name), 'anchor_name');
    rejectUnless(isSignedBy(issuer, anchor.publicKey), 'anchor_signature');
    steps.push('anchor');
    checkExtensions(leaf, issuer);
    const read = readDeviceFacts(leaf.extensions);
    if (!read.ok) throw new ChainRejected(read.code);
    facts = read.facts;
    steps.push('extensions');
    checkDevice(facts, expected);
    steps.push('device');
    rejectUnless(facts.sipEnabled, 'sip_disabled');
    rejectUnless(facts.secureBoot === 'Full Security', 'secure_boot_reduced');
    rejectUnless(!facts.thirdPartyKexts, 'kexts_allowed');
    steps.push('protections');
    const { freshness } = facts;
    rejectUnless(expected.freshness === undefined || expected.freshness.some((code) => equalBytes(code, freshness)), 'freshness_mismatch');
    steps.push('freshness');
    rejectUnless(expected.maxAgeMs === undefined || now - leaf.notBefore <= expected.maxAgeMs, 'too_old');
    steps.push('age');
    return { ok: true, facts, steps };
  } catch (error) {
    if (error instanceof ChainRejected) return { ok: false, code: error.code, steps, facts };
    throw error;
  }
}

function decode(chain: readonly string[]): { leaf: Certificate; issuer: Certificate } {
  const [leafText, issuerText] = chain;
  if (leafText === undefined || issuerText === undefined || chain.length !== 2) throw new ChainRejected('chain_count');
  rejectUnless((leafText.length + issuerText.length) * 0.75 <= MAX_BYTES, 'chain_too_large');
  const [leafDer, issuerDer] = [fromCanonicalBase64(leafText), fromCanonicalBase64(issuerText)];
  return { leaf: certificateOf(leafDer), issuer: certificateOf(issuerDer) };
}

function fromCanonicalBase64(text: string): Uint8Array {
  try {
    return fromBase64(text);
  } catch {
    throw new ChainRejected('base64_not_canonical');
  }
}

function certificateOf(der: Uint8Array): Certificate {
  try {
    return readCertificate(der);
  } catch (error) {
    if (error instanceof DerError) throw new ChainRejected(error.problem === 'malformed' ? 'der_malformed' : 'der_trailing_bytes');
    if (error instanceof CertificateError) throw new ChainRejected('certificate_malformed');
    throw error;
  }
}

/** Path validation (RFC 5280 §6.1) with one intermediate. Apple signs with ECDSA and SHA-384 only. */
function checkPath(leaf: Certificate, issuer: Certificate, now: number): void {
  const constraints = leaf.basicConstraints;
  // Malformed constraints could belong to an authority.
  rejectUnless(constraints !== 'malformed' && constraints?.ca !== true, 'leaf_is_ca');
  rejectUnless(constraints?.critical === true, 'leaf_constraints_missing');
  const usage = leaf.keyUsage;
  rejectUnless(usage !== 'malformed' && usage?.critical === true && usage.digitalSignature && !usage.keyCertSign, 'leaf_key_usage');
  const authority = issuer.basicConstraints;
  rejectUnless(authority !== 'malformed' && authority?.ca === true && authority.critical, 'issuer_not_ca');
  rejectUnless(authority.pathLength === 0, 'issuer_path_length');
  rejectUnless(issuer.keyUsage !== 'malformed' && issuer.keyUsage?.keyCertSign === true, 'issuer_key_usage');
  // An empty name has two bytes of DER.
  rejectUnless(equalBytes(leaf.issuer, issuer.subject) && leaf.issuer.length > 2, 'names_not_chained');
  rejectUnless(leaf.ecdsaSha384 && issuer.ecdsaSha384, 'signature_algorithm');
  rejectUnless(leaf.publicKey !== null, 'leaf_key_unsupported');
  if (issuer.publicKey === null) throw new ChainRejected('issuer_key_unsupported');
  rejectUnless(isSignedBy(leaf, issuer.publicKey), 'leaf_signature');
  rejectUnless(now >= leaf.notBefore, 'leaf_not_yet_valid');
  rejectUnless(now <= leaf.notAfter, 'leaf_expired');
  rejectUnless(now >= issuer.notBefore, 'issuer_not_yet_valid');
  rejectUnless(now <= issuer.notAfter, 'issuer_expired');
}

function checkExtensions(leaf: Certificate, issuer: Certificate): void {
  for (const { extensions } of [leaf, issuer]) {
    rejectUnless(
      extensions.every(({ oid, critical }) => !critical || SUPPORTED_CRITICAL.has(oid)),
      'unknown_critical_extension',
    );
  }
  for (const { extensions } of [leaf, issuer]) {
    rejectUnless(new Set(extensions.map(({ oid }) => oid)).size === extensions.length, 'duplicate_extension');
  }
  const usages = leaf.extendedKeyUsages;
  rejectUnless(usages === null || (usages !== 'malformed' && usages.includes(DEVICE_ATTESTATION_USAGE)), 'extended_key_usage');
  rejectUnless(leaf.publicKey !== null && leaf.commonName === sha256Hex(leaf.publicKey), 'common_name');
}

function checkDevice(facts: DeviceFacts, expected: ExpectedDevice): void {
  rejectUnless(expected.serial === undefined || expected.serial === facts.serial, 'serial_mismatch');
  rejectUnless(expected.udid === undefined || expected.udid === facts.udid, 'udid_mismatch');
  rejectUnless(expected.board === undefined || expected.board === facts.board, 'board_mismatch');
  rejectUnless(expected.chip === undefined || chipMatchesUdid(expected.chip, facts.udid), 'chip_mismatch');
}

function rejectUnless(condition: boolean, code: ChainRejection): asserts condition {
  if (!condition) throw new ChainRejected(code);
}
