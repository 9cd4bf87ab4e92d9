/** Types of evidence, the input of the trust decision. Bound to an enclave key; serial numbers are public. Times in milliseconds. */
import type { ChainRejection, NoncePreimage, Posture } from '@inference/protocol';
import type { ChainFacts } from './chain/verify-chain.js';

/** An attestation statement signed by its own key. */
export interface AttestationEvidence {
  readonly publicKeySha256: string;
  readonly issuedAt: number;
  /** Time of receipt on this connection. */
  readonly receivedAt: number;
  readonly serialNumber: string;
  readonly chipName: string;
  readonly posture: Posture;
  /** The key is in software, or the helper reports no enclave. */
  readonly simulated: boolean;
}

/** The newest answered challenge of this connection. */
export interface ChallengeEvidence {
  readonly publicKeySha256: string;
  readonly passedAt: number;
  readonly posture: Posture;
  /** Challenges missed since. */
  readonly missedSince: number;
}

/** The statement that binds the current sealing key to the enclave key. */
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
  /** Null: the answer has no such member. */
  readonly authenticatedRootEnabled: boolean | null;
}

/** Response to a device-management `DeviceInformation` command; null for absent members. */
export interface DeviceInformationEvidence {
  readonly receivedAt: number;
  readonly serialNumber: string;
  readonly provisioningUdid: string | null;
  readonly softwareUpdateDeviceId: string | null;
}

/** A managed-device chain as received, with the preimage of its nonce. */
export interface DeviceChainEvidence {
  readonly receivedAt: number;
  /** base64 of DER, leaf first. */
  readonly certificates: readonly string[];
  readonly preimage: NoncePreimage;
}

/** A chain from an ACME device-attest-01 order. */
interface AcmeChainEvidence {
  readonly receivedAt: number;
  readonly certificates: readonly string[];
  /** Token of the challenge; its SHA-256 is the freshness code. */
  readonly token: string;
}

/** Stored evidence of one enclave key, verified again at each read. */
export interface DeviceEvidence {
  readonly publicKeySha256: string;
  /** Time of the enrolment in device management under this key; null: not enrolled. */
  readonly enrolledAt: number | null;
  readonly security: SecurityInfoEvidence | null;
  readonly information: DeviceInformationEvidence | null;
  readonly chain: DeviceChainEvidence | null;
  readonly acme: AcmeChainEvidence | null;
}

export type ChainFinding =
  | { readonly kind: 'verified'; readonly facts: ChainFacts; readonly simulatedAnchor: boolean }
  | { readonly kind: 'refused'; readonly code: ChainRejection }
  /** The preimage names another enclave key, or is malformed. */
  | { readonly kind: 'unbound' };

/** Stored evidence with the results of its chain verification. */
export interface DeviceFindings extends Omit<DeviceEvidence, 'chain' | 'acme'> {
  readonly chain: ChainFinding | null;
  readonly acme: ChainFinding | null;
  /** The verified evidence, for the public record. */
  readonly evidence: DeviceEvidence;
}

/** All inputs of the trust level of one connection. */
export interface TrustEvidence {
  /** Enclave key of this connection. */
  readonly publicKeySha256: string;
  readonly attestation: AttestationEvidence | null;
  readonly challenge: ChallengeEvidence | null;
  readonly sealingKey: SealingKeyEvidence | null;
  readonly device: DeviceFindings | null;
  /** The operator admits simulated enclaves. */
  readonly allowSimulatedEnclave: boolean;
}
