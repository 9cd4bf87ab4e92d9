/**
 * The evidence that trust is computed from. Every piece names the enclave key it was gathered for, and none is ever looked
 * up by serial number: serial numbers are public. Times are in milliseconds.
 */
import type { ChainRejection, NoncePreimage, Posture } from '@inference/protocol';
import type { ChainFacts } from './chain/verify-chain.js';

/** An attestation statement that its own key signed. */
export interface AttestationEvidence {
  readonly publicKeySha256: string;
  readonly issuedAt: number;
  /** When it was shown on this connection. */
  readonly receivedAt: number;
  readonly serialNumber: string;
  readonly chipName: string;
  readonly posture: Posture;
  /** The key is in software, or the helper says that there is no enclave. */
  readonly simulated: boolean;
}

/** The newest challenge of this connection that was answered. */
export interface ChallengeEvidence {
  readonly publicKeySha256: string;
  readonly passedAt: number;
  readonly posture: Posture;
  /** Challenges missed since. */
  readonly missedSince: number;
}

/** The statement that binds the present sealing key to the enclave key. */
export interface SealingKeyEvidence {
  readonly publicKeySha256: string;
  readonly notAfter: number;
}

/** Answer to a device-management `SecurityInfo` command. */
export interface SecurityInfoEvidence {
  readonly receivedAt: number;
  readonly sipEnabled: boolean;
  readonly secureBootLevel: 'off' | 'medium' | 'full' | 'not supported';
  readonly diskEncryptionEnabled: boolean;
  /** Null when the answer did not say. */
  readonly authenticatedRootEnabled: boolean | null;
}

/** Answer to a device-management `DeviceInformation` command; null for what it did not say. */
export interface DeviceInformationEvidence {
  readonly receivedAt: number;
  readonly serialNumber: string;
  readonly provisioningUdid: string | null;
  readonly softwareUpdateDeviceId: string | null;
}

/** A managed-device chain as it came, with what its nonce was made from. */
export interface DeviceChainEvidence {
  readonly receivedAt: number;
  /** base64 of DER, leaf first. */
  readonly certificates: readonly string[];
  readonly preimage: NoncePreimage;
}

/** A chain from an ACME device-attest-01 order. */
export interface AcmeChainEvidence {
  readonly receivedAt: number;
  readonly certificates: readonly string[];
  /** Token of the challenge, whose SHA-256 is the freshness code. */
  readonly token: string;
}

/** What is stored per enclave key. It is verified again whenever it is read. */
export interface DeviceEvidence {
  readonly publicKeySha256: string;
  /** The device has enrolled in device management under this key. */
  readonly enrolledAt: number | null;
  readonly security: SecurityInfoEvidence | null;
  readonly information: DeviceInformationEvidence | null;
  readonly chain: DeviceChainEvidence | null;
  readonly acme: AcmeChainEvidence | null;
}

export type ChainFinding =
  | { readonly kind: 'verified'; readonly facts: ChainFacts; readonly simulatedAnchor: boolean }
  | { readonly kind: 'refused'; readonly code: ChainRejection }
  /** The preimage names another enclave key, or is none. */
  | { readonly kind: 'unbound' };

/** Stored evidence after its chains were verified. */
export interface DeviceFindings extends Omit<DeviceEvidence, 'chain' | 'acme'> {
  readonly chain: ChainFinding | null;
  readonly acme: ChainFinding | null;
  /** What was verified, for the public record. */
  readonly evidence: DeviceEvidence;
}

/** Everything that the trust level of one connection is computed from. */
export interface TrustEvidence {
  /** Key of this connection. */
  readonly publicKeySha256: string;
  readonly attestation: AttestationEvidence | null;
  readonly challenge: ChallengeEvidence | null;
  readonly sealingKey: SealingKeyEvidence | null;
  readonly device: DeviceFindings | null;
  /** The operator admits simulated enclaves. */
  readonly allowSimulatedEnclave: boolean;
}
