/**
 * `readEvidence` decodes stored device evidence. `verifyAttestation` and `certifiedAt` verify the attestation in it.
 *
 * The results are not stored, because they can become wrong with time.
 */

import type { ChainRejection } from '@inference/protocol';
import { fromBase64, type NoncePreimage, NoncePreimageSchema, toBase64 } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import type { EvidenceRecord } from '../database/devices/device-evidence-repository.js';
import { deviceNonce } from '../providers/verification/chain/freshness.js';
import type { TrustAnchor } from '../providers/verification/chain/trust-anchor.js';
import { type ChainVerdict, verifyDeviceChain } from '../providers/verification/chain/verify-chain.js';
import type { DeviceEvidence, DeviceInformationEvidence, SecurityInfoEvidence } from '../providers/verification/evidence.js';
import { certificatesIn } from './acme.js';
import { jsonReader } from './json-reader.js';
import { type DeviceInformation, type ReportContent, readReport, type SecurityInfo } from './reports.js';

interface EvidenceRules {
  readonly anchor: TrustAnchor;
  /** Milliseconds. */
  readonly now: number;
}

export type AttestationRejection =
  | ChainRejection
  /** Serial number, provisioning UDID or software update device id is missing. */
  | 'identity_incomplete'
  | 'no_attestation';

const AttestationPayload = Type.Object({ report: Type.String(), preimage: NoncePreimageSchema });
const SecurityPayload = Type.Object({ report: Type.String() });
const AcmePayload = Type.Object({ token: Type.String(), att_obj: Type.String() });
const readers = { attestation: jsonReader(AttestationPayload), security: jsonReader(SecurityPayload), acme: jsonReader(AcmePayload) };

/** Encodes the payloads of stored evidence. */
export const payloads = {
  attestation: (report: Uint8Array, preimage: NoncePreimage): string => JSON.stringify({ report: toBase64(report), preimage }),
  security: (report: Uint8Array): string => JSON.stringify({ report: toBase64(report) }),
  acme: (value: Static<typeof AcmePayload>): string => JSON.stringify(value),
};

/** Enrolment to which evidence must belong. */
interface CurrentEnrolment {
  readonly id: string;
  /** Since when the device accepts commands; null: not yet. */
  readonly enrolledAt: number | null;
}

/** Reads the records of the current enrolment, and ignores those of earlier ones. Does not verify certificate chains. */
export function readEvidence(
  publicKeySha256: string,
  records: readonly EvidenceRecord[],
  enrolment: CurrentEnrolment | null,
): DeviceEvidence {
  const find = (kind: EvidenceRecord['kind']): EvidenceRecord | undefined =>
    records.find((record) => record.kind === kind && record.enrolmentId === enrolment?.id);
  const attestation = attestationIn(find('attestation'));
  return {
    publicKeySha256,
    enrolledAt: enrolment?.enrolledAt ?? null,
    security: securityIn(find('security_info')),
    information: attestation && informationEvidence(attestation.info, attestation.receivedAt),
    chain: attestation?.info.attestation
      ? { receivedAt: attestation.receivedAt, certificates: attestation.info.attestation.map(toBase64), preimage: attestation.preimage }
      : null,
    acme: acmeIn(find('acme')),
  };
}

/** Verifies device information: the certificate must contain the same three identifiers, and the nonce of the preimage. */
export function verifyAttestation(
  info: DeviceInformation,
  preimage: NoncePreimage,
  rules: EvidenceRules,
): ChainVerdict | { readonly ok: false; readonly code: AttestationRejection } {
  const { serialNumber, provisioningUdid, softwareUpdateDeviceId, attestation } = info;
  if (attestation === null) return { ok: false, code: 'no_attestation' };
  if (serialNumber === null || provisioningUdid === null || softwareUpdateDeviceId === null)
    return { ok: false, code: 'identity_incomplete' };
  const freshness = deviceNonce(preimage);
  if (freshness === null) return { ok: false, code: 'freshness_mismatch' };
  const claims = { serialNumber, provisioningUdid, softwareUpdateDeviceId, chipName: null };
  return verifyDeviceChain(attestation.map(toBase64), { claims, freshness }, rules.anchor, rules.now);
}

/** Returns when the certificate in the records was issued, in milliseconds since 1970; null: no valid certificate. */
export function certifiedAt(records: readonly EvidenceRecord[], enrolmentId: string, rules: EvidenceRules): number | null {
  const found = attestationIn(records.find((record) => record.kind === 'attestation' && record.enrolmentId === enrolmentId));
  if (found === null) return null;
  const verdict = verifyAttestation(found.info, found.preimage, rules);
  return verdict.ok ? verdict.facts.notBefore : null;
}

/** Converts reported protections to evidence. A missing value means off, except for the seal of the system volume. */
function securityEvidence(info: SecurityInfo, receivedAt: number): SecurityInfoEvidence {
  return {
    receivedAt,
    sipEnabled: info.systemIntegrityProtection === true,
    secureBootLevel: info.secureBootLevel ?? 'not supported',
    diskEncryptionEnabled: info.diskEncryption === true,
    authenticatedRootEnabled: info.authenticatedRootVolume,
  };
}

function informationEvidence(info: DeviceInformation, receivedAt: number): DeviceInformationEvidence | null {
  const { serialNumber, provisioningUdid, softwareUpdateDeviceId } = info;
  return serialNumber === null ? null : { receivedAt, serialNumber, provisioningUdid, softwareUpdateDeviceId };
}

function securityIn(record: EvidenceRecord | undefined): SecurityInfoEvidence | null {
  const value = record && readers.security(record.payload);
  const content = value ? contentOf(value.report) : null;
  return record !== undefined && content?.kind === 'security_info' ? securityEvidence(content.info, record.receivedAt) : null;
}

function attestationIn(record: EvidenceRecord | undefined) {
  const value = record && readers.attestation(record.payload);
  const content = value ? contentOf(value.report) : null;
  if (record === undefined || !value || content?.kind !== 'device_information') return null;
  return { info: content.info, preimage: value.preimage, receivedAt: record.receivedAt };
}

function acmeIn(record: EvidenceRecord | undefined): DeviceEvidence['acme'] {
  const value = record && readers.acme(record.payload);
  const certificates = value ? certificatesIn(value.att_obj) : null;
  return record === undefined || !value || certificates === null
    ? null
    : { receivedAt: record.receivedAt, certificates, token: value.token };
}

function contentOf(base64: string): ReportContent | null {
  try {
    const read = readReport(fromBase64(base64));
    return read.ok ? read.value.content : null;
  } catch {
    return null;
  }
}
