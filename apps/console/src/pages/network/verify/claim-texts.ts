/** Display texts for the claims of an attestation record, and for the stages and steps of their verification. */
import type { ChainStep, VerificationStage } from '@inference/verifier';

/** `RecordFindings` labels other claims with their name. */
export const CLAIM_LABELS: Readonly<Record<string, string>> = {
  provider_id: 'Provider ID',
  se_public_key: 'Enclave key',
  attestation_statement: 'Attestation statement',
  chip_name: 'Chip',
  hardware_model: 'Hardware model',
  serial_number: 'Serial number',
  memory_gb: 'Memory in GB',
  key_protection: 'Key protection',
  simulated: 'Simulated enclave',
  secure_enclave: 'Secure Enclave (claimed)',
  enclave_evidence: 'Evidence of the Secure Enclave',
  sip_enabled: 'System Integrity Protection',
  secure_boot_enabled: 'Secure boot',
  authenticated_root_enabled: 'Sealed system volume',
  attested: 'Answered the newest challenge',
  key_statement: 'Sealing key',
  mda_verified: 'Apple device attestation',
  mda_binding: 'Certificate bound to this key',
  mda_serial: 'Serial number in the certificate',
  mda_udid: 'Device identifier in the certificate',
  mda_os_version: 'OS version in the certificate',
  mda_sepos_version: 'Enclave OS version in the certificate',
  acme_verified: 'Apple attestation of the management key',
  mdm_verified: 'Device management cross-check',
  trust_level: 'Trust level',
};

export const STAGE_TEXTS: Readonly<Record<VerificationStage, { readonly title: string; readonly about: string }>> = {
  enclave_key: {
    title: 'Key',
    about: 'Each statement is verified with the enclave key and compared with the record.',
  },
  certificate_chain: {
    title: 'Apple certificate',
    about: "Certificates must chain to Apple's root, which is pinned in this page, and be bound to the enclave key.",
  },
  device_management: {
    title: 'Device management',
    about: 'Stated only by the coordinator: the evidence of device management cannot be published.',
  },
  trust_level: { title: 'Trust level', about: 'The weakest part above determines the level.' },
};

/** Steps of certificate chain verification, in order. */
export const CHAIN_STEPS: readonly { readonly step: ChainStep; readonly label: string }[] = [
  { step: 'encoding', label: 'Encoding' },
  { step: 'path', label: 'Signatures and dates' },
  { step: 'anchor', label: 'Pinned root' },
  { step: 'extensions', label: 'Extensions' },
  { step: 'device', label: 'Same machine' },
  { step: 'protections', label: 'Protections' },
  { step: 'freshness', label: 'Bound to the key' },
  { step: 'age', label: 'Age' },
];
