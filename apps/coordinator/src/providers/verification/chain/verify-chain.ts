/**
 * `verifyDeviceChain` verifies a device certificate and its issuer up to a trust anchor (RFC 5280 section 6.1).
 *
 * A refusal contains the code of the first failed check. The verifier package has an independent implementation (docs/decisions/0010).
 */
import { type ChainRejection, equalBytes, fromBase64, fromHex } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { type Certificate, CertificateError, extensionValues, nameAttributes, parseCertificate } from './certificate.js';
import { DerError } from './der.js';
import { chipOfUdid, DEVICE_OIDS, type DeviceFacts, readDeviceFacts } from './device-facts.js';
import { pointOf, verifyP384, verifyP384Cached } from './p384.js';
import {
  basicConstraints,
  DEVICE_ATTESTATION_PURPOSE,
  KEY_USAGE_BIT,
  keyPurposes,
  keyUsageBits,
  STANDARD_EXTENSION_OIDS,
} from './standard-extensions.js';
import type { TrustAnchor } from './trust-anchor.js';

/** Maximum age of a certificate for trust level `hardware`. */
export const MAX_CHAIN_AGE_MS = 30 * 24 * 60 * 60_000;
/** Maximum base64 characters of one certificate. Real ones have about 1200. */
const MAX_CERTIFICATE_CHARACTERS = 16_384;

/** Facts from other sources, which the certificate must match. Null members are unknown and not compared. */
export interface DeviceClaims {
  readonly serialNumber: string;
  readonly provisioningUdid: string | null;
  readonly softwareUpdateDeviceId: string | null;
  /** Chip name in the attestation, for example `Apple M4 Max`. */
  readonly chipName: string | null;
}

export interface ChainExpectations {
  readonly claims: DeviceClaims;
  /** Freshness code that binds the chain to an enclave key, 32 bytes. */
  readonly freshness: Uint8Array;
}

export interface ChainFacts extends DeviceFacts {
  /** Validity period of the device certificate, in milliseconds since 1970. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** When the chain stops supporting `hardware`: a certificate expires, or the device certificate reaches the maximum age. */
  readonly goodUntil: number;
  /** SHA-256 of the device certificate's DER, in hexadecimal. */
  readonly leafSha256: string;
  /** Public key in the device certificate, a 97-byte point. */
  readonly leafPublicKey: Uint8Array;
  /** Chip name for the UDID; null if unknown. */
  readonly chipName: string | null;
}

export type ChainVerdict = { readonly ok: true; readonly facts: ChainFacts } | { readonly ok: false; readonly code: ChainRejection };

class Rejection extends Error {
  constructor(readonly code: ChainRejection) {
    super(code);
  }
}

/** Verifies `[leaf, issuer]`, each base64 of DER. `now` in milliseconds since 1970. Never throws, whatever the peer sent. */
export function verifyDeviceChain(chain: readonly string[], expected: ChainExpectations, anchor: TrustAnchor, now: number): ChainVerdict {
  try {
    return { ok: true, facts: verify(chain, expected, anchor, now) };
  } catch (error) {
    if (error instanceof Rejection) return { ok: false, code: error.code };
    // Names and object identifiers are read after the parsing.
    if (error instanceof CertificateError) return { ok: false, code: 'certificate_malformed' };
    throw error;
  }
}

function verify(chain: readonly string[], { claims, freshness }: ChainExpectations, anchor: TrustAnchor, now: number): ChainFacts {
  const [leafDer, issuerDer] = decode(chain);
  const { leaf, issuer, leafPoint, facts, leafSha256 } = verifyCertificates(leafDer, issuerDer, anchor, now);
  // Checked here too, because a cached result says nothing about the time.
  requireValidity(leaf, issuer, now);
  requireClaims(facts, claims);
  if (!facts.sipEnabled) refuse('sip_disabled');
  if (facts.secureBoot !== 'Full Security') refuse('secure_boot_reduced');
  if (facts.thirdPartyKextsAllowed) refuse('kexts_allowed');
  if (!equalBytes(facts.freshness, freshness)) refuse('freshness_mismatch');
  if (now - leaf.notBefore > MAX_CHAIN_AGE_MS) refuse('too_old');
  return {
    ...facts,
    notBefore: leaf.notBefore,
    notAfter: leaf.notAfter,
    goodUntil: Math.min(leaf.notAfter, issuer.notAfter, leaf.notBefore + MAX_CHAIN_AGE_MS),
    leafSha256,
    leafPublicKey: leafPoint,
    chipName: chipOfUdid(facts.provisioningUdid),
  };
}

/** Result of the checks that depend neither on the clock nor on claims, and so never change. */
interface VerifiedCertificates {
  readonly leaf: Certificate;
  readonly issuer: Certificate;
  readonly leafPoint: Uint8Array;
  readonly facts: DeviceFacts;
  readonly leafSha256: string;
}

const MAX_CACHED_CHAINS = 1024;
/** Cache of successful results. Key: hashes of certificate, issuer and anchor. */
const verifiedChains = new BoundedMap<string, VerifiedCertificates>(MAX_CACHED_CHAINS);

/** `now` only determines which failure is found first: validity is checked before the anchor. */
function verifyCertificates(leafDer: Uint8Array, issuerDer: Uint8Array, anchor: TrustAnchor, now: number): VerifiedCertificates {
  const leafSha256 = sha256Hex(leafDer);
  const key = [leafSha256, sha256Hex(issuerDer), sha256Hex(anchor.name), sha256Hex(anchor.publicKey)].join();
  const known = verifiedChains.get(key);
  if (known !== undefined) return known;
  const leaf = parse(leafDer);
  const issuer = parse(issuerDer);
  requireLeafRole(leaf);
  requireIssuerRole(issuer);
  const leafPoint = requirePath(leaf, issuer);
  requireValidity(leaf, issuer, now);
  requireAnchor(issuer, anchor);
  requireExtensions(leaf, issuer, leafPoint);
  const facts = readDeviceFacts(leaf, refuse);
  const verified = { leaf, issuer, leafPoint, facts, leafSha256 };
  verifiedChains.set(key, verified);
  return verified;
}

function decode(chain: readonly string[]): [Uint8Array, Uint8Array] {
  const [leaf, issuer] = chain;
  if (chain.length !== 2 || leaf === undefined || issuer === undefined) return refuse('chain_count');
  if (leaf.length > MAX_CERTIFICATE_CHARACTERS || issuer.length > MAX_CERTIFICATE_CHARACTERS) return refuse('chain_too_large');
  try {
    return [fromBase64(leaf), fromBase64(issuer)];
  } catch {
    return refuse('base64_not_canonical');
  }
}

function parse(der: Uint8Array): Certificate {
  try {
    return parseCertificate(der);
  } catch (error) {
    if (error instanceof DerError) return refuse(error.problem === 'trailing_bytes' ? 'der_trailing_bytes' : 'der_malformed');
    if (error instanceof CertificateError) return refuse('certificate_malformed');
    throw error;
  }
}

/** AlgorithmIdentifier of ecdsa-with-SHA384, without parameters (RFC 5758 section 3.2). */
const ECDSA_SHA384 = fromHex('300a06082a8648ce3d040303');
/** Tag and length of a SEQUENCE without members. */
const EMPTY_NAME_BYTES = 2;

/** Returns the leaf's public key. Requires that the names match, and that the issuer signed the leaf. */
function requirePath(leaf: Certificate, issuer: Certificate): Uint8Array {
  if (leaf.issuer.length === EMPTY_NAME_BYTES || !equalBytes(leaf.issuer, issuer.subject)) refuse('names_not_chained');
  for (const { signatureAlgorithm, outerSignatureAlgorithm } of [leaf, issuer]) {
    if (!equalBytes(signatureAlgorithm, ECDSA_SHA384) || !equalBytes(outerSignatureAlgorithm, ECDSA_SHA384)) refuse('signature_algorithm');
  }
  const leafPoint = pointOf(leaf.publicKeyInfo) ?? refuse('leaf_key_unsupported');
  const issuerPoint = pointOf(issuer.publicKeyInfo) ?? refuse('issuer_key_unsupported');
  if (!verifyP384(issuerPoint, leaf.signedBytes, leaf.signature)) refuse('leaf_signature');
  return leafPoint;
}

function requireValidity(leaf: Certificate, issuer: Certificate, now: number): void {
  if (now < leaf.notBefore) refuse('leaf_not_yet_valid');
  // Certificate times have whole seconds, and the last second is included.
  if (now >= leaf.notAfter + 1000) refuse('leaf_expired');
  if (now < issuer.notBefore) refuse('issuer_not_yet_valid');
  if (now >= issuer.notAfter + 1000) refuse('issuer_expired');
}

function requireAnchor(issuer: Certificate, anchor: TrustAnchor): void {
  if (!equalBytes(issuer.issuer, anchor.name)) refuse('anchor_name');
  if (!verifyP384Cached(anchor.publicKey, issuer.signedBytes, issuer.signature)) refuse('anchor_signature');
}

/** Extensions that may be critical. The value of each is checked, here or in `readDeviceFacts`. */
const KNOWN_EXTENSION_OIDS = new Set<string>([...Object.values(STANDARD_EXTENSION_OIDS), ...Object.values(DEVICE_OIDS)]);

function requireExtensions(leaf: Certificate, issuer: Certificate, leafPoint: Uint8Array): void {
  for (const { extensions } of [leaf, issuer]) {
    if (extensions.some(({ critical, oid }) => critical && !KNOWN_EXTENSION_OIDS.has(oid))) refuse('unknown_critical_extension');
  }
  for (const { extensions } of [leaf, issuer]) {
    if (new Set(extensions.map(({ oid }) => oid)).size !== extensions.length) refuse('duplicate_extension');
  }
  const [purposes] = extensionValues(leaf, STANDARD_EXTENSION_OIDS.extendedKeyUsage);
  if (purposes !== undefined && !keyPurposes(purposes).includes(DEVICE_ATTESTATION_PURPOSE)) refuse('extended_key_usage');
  const names = nameAttributes(leaf.subject, '2.5.4.3');
  if (names.length !== 1 || names[0] !== sha256Hex(leafPoint)) refuse('common_name');
}

function requireClaims(facts: DeviceFacts, claims: DeviceClaims): void {
  if (facts.serialNumber !== claims.serialNumber) refuse('serial_mismatch');
  if (claims.provisioningUdid !== null && facts.provisioningUdid !== claims.provisioningUdid) refuse('udid_mismatch');
  if (claims.softwareUpdateDeviceId !== null && facts.softwareUpdateDeviceId !== claims.softwareUpdateDeviceId) refuse('board_mismatch');
  const chip = chipOfUdid(facts.provisioningUdid);
  if (chip !== null && claims.chipName !== null && chip !== claims.chipName) refuse('chip_mismatch');
}

function refuse(code: ChainRejection): never {
  throw new Rejection(code);
}

function requireLeafRole(leaf: Certificate): void {
  const constraints = singleExtension(leaf, STANDARD_EXTENSION_OIDS.basicConstraints);
  if (constraints === null) refuse('leaf_constraints_missing');
  // Unreadable constraints could belong to an authority.
  if (basicConstraints(constraints)?.isAuthority !== false) refuse('leaf_is_ca');
  const bits = usageOf(leaf);
  const mayIssue = bits?.has(KEY_USAGE_BIT.keyCertSign) || bits?.has(KEY_USAGE_BIT.crlSign);
  if (bits === null || mayIssue || !bits.has(KEY_USAGE_BIT.digitalSignature)) refuse('leaf_key_usage');
}

function requireIssuerRole(issuer: Certificate): void {
  const value = singleExtension(issuer, STANDARD_EXTENSION_OIDS.basicConstraints);
  const constraints = value === null ? null : basicConstraints(value);
  if (constraints?.isAuthority !== true) refuse('issuer_not_ca');
  if (constraints.pathLength !== 0) refuse('issuer_path_length');
  if (!usageOf(issuer)?.has(KEY_USAGE_BIT.keyCertSign)) refuse('issuer_key_usage');
}

function usageOf(certificate: Certificate): ReadonlySet<number> | null {
  const value = singleExtension(certificate, STANDARD_EXTENSION_OIDS.keyUsage);
  return value === null ? null : keyUsageBits(value);
}

/** Value of an extension that may occur once; null: absent. */
function singleExtension(certificate: Certificate, oid: string): Uint8Array | null {
  const [value, another] = extensionValues(certificate, oid);
  return another === undefined ? (value ?? null) : refuse('duplicate_extension');
}
