/** Display texts for claims of a record and for the results of their verification. */
import type { ChainStep, FindingResult, VerificationStage } from '@inference/verifier';
import type { Tone } from '../../../ui/feedback/note.js';

/** Unlisted claims show their own name. */
export const CLAIM_LABELS: Readonly<Record<string, string>> = {
  provider_id: 'Provider id',
  se_public_key: 'Enclave key',
  attestation_statement: 'Attestation statement',
  chip_name: 'Chip',
  hardware_model: 'Model of the machine',
  serial_number: 'Serial number',
  memory_gb: 'Memory in GB',
  key_protection: 'Where the key is kept',
  simulated: 'Simulated enclave',
  secure_enclave: 'Secure Enclave, as the machine claims',
  enclave_evidence: 'Evidence of the Secure Enclave',
  sip_enabled: 'System Integrity Protection',
  secure_boot_enabled: 'Secure boot',
  authenticated_root_enabled: 'Sealed system volume',
  attested: 'Answered the newest challenge',
  key_statement: 'Sealing key',
  mda_verified: "Maker's certificate of the device",
  mda_binding: 'Certificate bound to this key',
  mda_serial: 'Serial number in the certificate',
  mda_udid: 'Device identifier in the certificate',
  mda_os_version: 'System in the certificate',
  mda_sepos_version: 'Enclave system in the certificate',
  acme_verified: "Maker's certificate of the management key",
  mdm_verified: 'Cross-check by device management',
  trust_level: 'Trust level',
};

export const RESULT_WORDS: Readonly<Record<FindingResult, { readonly label: string; readonly tone: Tone }>> = {
  reproduced: { label: 'Reproduced', tone: 'good' },
  simulated: { label: 'Simulated', tone: 'warn' },
  word: { label: "Coordinator's word", tone: 'warn' },
  contradicted: { label: 'Contradicted', tone: 'bad' },
};

export const STAGE_WORDS: Readonly<Record<VerificationStage, { readonly title: string; readonly about: string }>> = {
  enclave_key: {
    title: "What the machine's own key signed",
    about: 'Each statement is opened with the enclave key, and compared with what the record claims.',
  },
  makers_chain: {
    title: 'What the maker certified',
    about: "Certificates are followed up to the maker's root, which is pinned in this page, and must be bound to the enclave key.",
  },
  device_management: { title: 'What only the coordinator can say', about: 'No evidence of this can be published.' },
  trust_level: { title: 'The trust level that follows', about: 'It stands on the weakest of the parts above.' },
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
