/**
 * `verifyDeviceEvidence` verifies the stored certificate chains of a device and recomputes their nonces.
 *
 * Called when a connection gets new evidence, and for descriptions of providers at other coordinators.
 */
import { fromBase64 } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { acmeFreshness, deviceNonce } from './chain/freshness.js';
import type { TrustAnchor } from './chain/trust-anchor.js';
import { type DeviceClaims, verifyDeviceChain } from './chain/verify-chain.js';
import type { AttestationEvidence, ChainFinding, DeviceEvidence, DeviceFindings } from './evidence.js';

interface DeviceVerificationContext {
  /** Enclave key of the connection. */
  readonly publicKeySha256: string;
  /** Statements of the machine about itself. */
  readonly attestation: Pick<AttestationEvidence, 'serialNumber' | 'chipName' | 'simulated'>;
  readonly anchor: TrustAnchor;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Returns the evidence with a finding for each certificate chain. Takes some milliseconds of processor time, unless cached. */
export function verifyDeviceEvidence(evidence: DeviceEvidence, context: DeviceVerificationContext): DeviceFindings {
  const claims = claimsOf(evidence, context);
  const { chain, acme } = evidence;
  const bound = chain !== null && isOfKey(chain.preimage.se_public_key, context.publicKeySha256);
  return {
    ...evidence,
    chain: chain && findingOf(chain.certificates, bound ? deviceNonce(chain.preimage) : null, claims, context),
    acme: acme && findingOf(acme.certificates, acmeFreshness(acme.token), claims, context),
    evidence,
  };
}

/** Whether the stored ACME chain of this key is valid. A chain to a simulated anchor is valid only for a simulated enclave. */
export function isAcmeVerified(
  device: DeviceFindings | null,
  key: { readonly publicKeySha256: string; readonly simulated: boolean },
): boolean {
  return (
    device?.acme?.kind === 'verified' && device.publicKeySha256 === key.publicKeySha256 && device.acme.simulatedAnchor === key.simulated
  );
}

function findingOf(
  certificates: readonly string[],
  freshness: Uint8Array | null,
  claims: DeviceClaims,
  { anchor, now }: DeviceVerificationContext,
): ChainFinding {
  if (freshness === null) return { kind: 'unbound' };
  const verdict = verifyDeviceChain(certificates, { claims, freshness }, anchor, now);
  if (!verdict.ok) return { kind: 'refused', code: verdict.code };
  return { kind: 'verified', facts: verdict.facts, simulatedAnchor: anchor.isSimulated };
}

function claimsOf({ information }: DeviceEvidence, { attestation }: DeviceVerificationContext): DeviceClaims {
  return {
    serialNumber: attestation.serialNumber,
    provisioningUdid: information?.provisioningUdid ?? null,
    softwareUpdateDeviceId: information?.softwareUpdateDeviceId ?? null,
    // A simulated machine claims a chip that does not exist, so the chip is not compared.
    chipName: attestation.simulated ? null : attestation.chipName,
  };
}

function isOfKey(publicKey: string, publicKeySha256: string): boolean {
  try {
    return sha256Hex(fromBase64(publicKey)) === publicKeySha256;
  } catch {
    return false;
  }
}
