/** Types of the evidence for a provider's trust level. Each piece is bound to an enclave key. Times in milliseconds since 1970. */
import type { ChainRejection, NoncePreimage, Posture } from '@inference/protocol';
import type { ChainFacts } from './chain/verify-chain.js';

/** An attestation statement, signed by the key that it contains. */
export interface AttestationEvidence {
  readonly publicKeySha256: string;
  readonly issuedAt: number;
  /** When the statement arrived at the coordinator that registered the provider. */
  readonly receivedAt: number;
  readonly serialNumber: string;
  readonly chipName: string;
  readonly posture: Posture;
  /** Whether the key is in software, or the helper reports no Secure Enclave. */
  readonly simulated: boolean;
}

/** The newest answered challenge of this connection. */
export interface ChallengeEvidence {
  readonly publicKeySha256: string;
  readonly passedAt: number;
  readonly posture: Posture;
  /** Number of challenges missed since then. */
  readonly missedSince: number;
}

/** The statement that binds the current sealing key to the enclave key. */
export interface SealingKeyEvidence {
  readonly publicKeySha256: string;
  readonly notAfter: number;
}

/** A Mac's answer to the `SecurityInfo` command of device management. */
export interface SecurityInfoEvidence {
  readonly receivedAt: number;
  readonly sipEnabled: boolean;
  readonly secureBootLevel: 'off' | 'medium' | 'full' | 'not supported';
  readonly diskEncryptionEnabled: boolean;
  /** Null if the answer has no such member. */
  readonly authenticatedRootEnabled: boolean | null;
}

/** A Mac's answer to the `DeviceInformation` command of device management. Absent members are null. */
export interface DeviceInformationEvidence {
  readonly receivedAt: number;
  readonly serialNumber: string;
  readonly provisioningUdid: string | null;
  readonly softwareUpdateDeviceId: string | null;
}

/** A device certificate chain as received, with the preimage of its nonce. */
export interface DeviceChainEvidence {
  readonly receivedAt: number;
  /** Base64 of DER, leaf first. */
  readonly certificates: readonly string[];
  readonly preimage: NoncePreimage;
}

/** A certificate chain from an ACME `device-attest-01` order. */
interface AcmeChainEvidence {
  readonly receivedAt: number;
  readonly certificates: readonly string[];
  /** Token of the ACME challenge, whose SHA-256 is the freshness code. */
  readonly token: string;
}

/** Stored evidence for one enclave key. Results of its verification are not stored. */
export interface DeviceEvidence {
  readonly publicKeySha256: string;
  /** When the device enrolled under this key; null: not enrolled. */
  readonly enrolledAt: number | null;
  readonly security: SecurityInfoEvidence | null;
  readonly information: DeviceInformationEvidence | null;
  readonly chain: DeviceChainEvidence | null;
  readonly acme: AcmeChainEvidence | null;
}

export type ChainFinding =
  | { readonly kind: 'verified'; readonly facts: ChainFacts; readonly simulatedAnchor: boolean }
  | { readonly kind: 'refused'; readonly code: ChainRejection }
  /** The preimage is malformed or contains another enclave key. */
  | { readonly kind: 'unbound' };

/** Stored evidence with the results of chain verification. */
export interface DeviceFindings extends Omit<DeviceEvidence, 'chain' | 'acme'> {
  readonly chain: ChainFinding | null;
  readonly acme: ChainFinding | null;
  /** The evidence itself, for the public attestation record. */
  readonly evidence: DeviceEvidence;
}

/** All inputs of the trust decision for one connection. */
export interface TrustEvidence {
  /** Enclave key of this connection. */
  readonly publicKeySha256: string;
  readonly attestation: AttestationEvidence | null;
  readonly challenge: ChallengeEvidence | null;
  readonly sealingKey: SealingKeyEvidence | null;
  readonly device: DeviceFindings | null;
  readonly allowSimulatedEnclave: boolean;
}
