/** Verifies the certificate chains of an attestation record: device attestation (MDA) and ACME attestation. */
import { type AttestationRecord, concatBytes, fromBase64OrNull, type NoncePreimage, utf8 } from '@inference/protocol';
import { sha256 } from '@noble/hashes/sha2.js';
import type { TrustAnchor } from '../chain/anchor.js';
import { type DeviceChainVerdict, verifyDeviceChain } from '../chain/verify-device-chain.js';
import { compared, contradicted, coordinatorClaim, type Finding } from './finding.js';

/** Maximum age of a device certificate, for trust level `hardware`. */
const MAX_CHAIN_AGE_MS = 30 * 24 * 60 * 60_000;

export interface ActiveTrustAnchor {
  readonly anchor: TrustAnchor;
  readonly simulated: boolean;
}

export interface CertificateEvidence {
  readonly findings: readonly Finding[];
  /** Verdict on the managed-device chain; null: no chain to verify. */
  readonly chain: DeviceChainVerdict | null;
}

export function certificateFindings(record: AttestationRecord, activeAnchor: ActiveTrustAnchor, now: number): CertificateEvidence {
  const { simulated } = activeAnchor;
  const device = deviceFindings(record, activeAnchor, now);
  const findings = [...device.findings, acmeFinding(record, activeAnchor, now)];
  return {
    findings: findings.map((finding) =>
      simulated && finding.result === 'reproduced' && finding.value !== false ? toSimulated(finding) : finding,
    ),
    chain: device.chain,
  };
}

function deviceFindings(record: AttestationRecord, activeAnchor: ActiveTrustAnchor, now: number): CertificateEvidence {
  const chain = record.mda_cert_chain_b64;
  const withoutChain = (finding: Finding): CertificateEvidence => ({ findings: [finding], chain: null });
  if (!record.mda_verified) {
    return withoutChain(compared('mda_verified', false, chain !== undefined, 'No certificate of the manufacturer is claimed.'));
  }
  const preimage = record.mda_nonce_preimage;
  if (chain === undefined) return withoutChain(contradicted('mda_verified', true, 'The record has no certificates.'));
  const nonce = preimage === undefined ? legacyNonce(record.se_public_key) : deviceNonce(preimage);
  if (nonce === null || (preimage !== undefined && preimage.se_public_key !== record.se_public_key)) {
    return withoutChain(contradicted('mda_verified', true, 'The nonce was not made from this enclave key.'));
  }
  const expected = { ...machineIn(record, activeAnchor), freshness: [nonce], maxAgeMs: MAX_CHAIN_AGE_MS };
  const verdict = verifyDeviceChain(chain, expected, now, activeAnchor.anchor);
  if (!verdict.ok) return { findings: [contradicted('mda_verified', true, refusal(verdict))], chain: verdict };
  const { facts } = verdict;
  const explanation = 'The certificate states it.';
  const findings = [
    compared('mda_verified', true, true, 'The chain verifies up to the anchor, and its freshness code was made from this enclave key.'),
    compared('mda_binding', record.mda_binding, 'bound', 'The freshness code is the nonce made from this enclave key.'),
    compared('mda_serial', record.mda_serial ?? '', facts.serial, explanation),
    compared('mda_udid', record.mda_udid ?? '', facts.udid, explanation),
    compared('mda_os_version', record.mda_os_version ?? '', facts.os_version, explanation),
    compared('mda_sepos_version', record.mda_sepos_version ?? '', facts.sepos_version, explanation),
  ];
  return { findings, chain: verdict };
}

function acmeFinding(record: AttestationRecord, activeAnchor: ActiveTrustAnchor, now: number): Finding {
  const proof = record.acme_attestation;
  if (!record.acme_verified) return compared('acme_verified', false, proof !== undefined, 'No such proof is claimed.');
  if (proof === undefined) return contradicted('acme_verified', true, 'The record has no proof.');
  const expected = { ...machineIn(record, activeAnchor), freshness: [acmeFreshness(proof.token)] };
  const verdict = verifyDeviceChain(proof.cert_chain_b64, expected, now, activeAnchor.anchor);
  if (!verdict.ok) return contradicted('acme_verified', true, refusal(verdict));
  return compared('acme_verified', true, true, 'The manufacturer certified a key of this device for the token of an ACME challenge.');
}

/** `mdm_verified` cannot be recomputed, because the evidence of device management is not published. */
export function managementFindings(record: AttestationRecord): readonly Finding[] {
  const claim = coordinatorClaim(
    'mdm_verified',
    record.mdm_verified,
    record.mdm_verified
      ? 'The coordinator states that device management reported protections and disk encryption as on; the evidence cannot be published.'
      : 'The coordinator does not claim a cross-check by device management.',
  );
  return [claim];
}

/** Expected serial number and chip. Simulations skip the chip, because a simulated UDID identifies no real chip. */
function machineIn(record: AttestationRecord, { simulated }: ActiveTrustAnchor): { readonly serial: string; readonly chip?: string } {
  return { serial: record.serial_number, ...(simulated ? {} : { chip: record.chip_name }) };
}

function refusal(verdict: DeviceChainVerdict & { ok: false }): string {
  return `The chain is refused: ${verdict.code}.`;
}

function toSimulated(finding: Finding): Finding {
  return {
    ...finding,
    result: 'simulated',
    explanation: `${finding.explanation} The anchor is a simulation: it proves nothing about a real machine.`,
  };
}

/** `SHA-256("inference/mda/v1" 0x00 ‖ x963 key ‖ u64be(epoch) ‖ 16 random bytes)`; null when the preimage is malformed. */
export function deviceNonce(preimage: NoncePreimage): Uint8Array | null {
  const key = fromBase64OrNull(preimage.se_public_key);
  const random = fromBase64OrNull(preimage.random);
  if (key?.length !== 65 || random?.length !== 16 || !Number.isSafeInteger(preimage.epoch) || preimage.epoch < 0) return null;
  const epoch = new Uint8Array(8);
  new DataView(epoch.buffer).setBigUint64(0, BigInt(preimage.epoch));
  return sha256(concatBytes(utf8('inference/mda/v1\0'), key, epoch, random));
}

/** Nonce of records without a preimage: SHA-256 of the key's base64 text. Binds the key, but no epoch. */
export function legacyNonce(publicKeyBase64: string): Uint8Array {
  return sha256(utf8(publicKeyBase64));
}

/** Freshness code of an ACME order: SHA-256 of the challenge's token. */
export function acmeFreshness(token: string): Uint8Array {
  return sha256(utf8(token));
}
