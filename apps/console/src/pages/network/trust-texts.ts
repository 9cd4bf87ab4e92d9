/** Display texts for the trust checks of a provider, and for the reasons why a check did not pass. */
import type { TrustPartName, TrustReason } from '@inference/protocol';

export const PART_TEXTS: Readonly<Record<TrustPartName, { readonly label: string; readonly meaning: string }>> = {
  attestation: {
    label: 'Attestation',
    meaning: 'A statement about the machine, signed by its enclave key, at most one day old when received.',
  },
  enclave: { label: 'Secure Enclave', meaning: 'The machine claims that its key is in its Secure Enclave and cannot be copied.' },
  posture: { label: 'Protections', meaning: 'System Integrity Protection and secure boot are on, as stated by the machine.' },
  challenge: { label: 'Challenge', meaning: 'Every five minutes the key signs a fresh nonce, so that old statements cannot be replayed.' },
  sealing_key: {
    label: 'Sealing key',
    meaning: 'Requests are sealed to a key valid for at most one hour, bound to the enclave key by a signature.',
  },
  device_management: { label: 'Device management', meaning: 'Device management reported its protections and disk encryption as on.' },
  device_identity: { label: 'Device identity', meaning: 'The serial numbers of the attestation and of device management match.' },
  device_chain: { label: 'Apple certificate', meaning: "Apple attested this machine: a certificate chain up to Apple's root." },
  key_binding: { label: 'Key binding', meaning: 'The certificate contains a nonce derived from this enclave key.' },
};

export const REASON_TEXTS: Readonly<Record<TrustReason, string>> = {
  attestation_missing: 'None was received.',
  attestation_stale: 'Too old when received.',
  no_secure_enclave: 'The key is stored in software.',
  sip_disabled: 'System Integrity Protection is off.',
  secure_boot_disabled: 'Secure boot is not at full security.',
  challenge_unanswered: 'None was answered in this session yet.',
  challenge_missed: 'The last challenge was not answered in time.',
  challenge_stale: 'The last answered challenge is too old.',
  sealing_key_missing: 'None was received.',
  sealing_key_expired: 'Expired.',
  evidence_of_another_key: 'The evidence belongs to another enclave key.',
  not_enrolled: 'The machine is not enrolled.',
  security_info_missing: 'No report yet.',
  security_info_stale: 'The last report is more than a day old.',
  managed_sip_disabled: 'System Integrity Protection is reported as off.',
  managed_secure_boot_not_full: 'Reduced boot security is reported.',
  managed_disk_encryption_off: 'Disk encryption is reported as off.',
  managed_root_volume_unsealed: 'The system volume is reported as not sealed.',
  device_information_missing: 'Not read yet.',
  device_information_incomplete: 'Some identifiers are missing.',
  serial_number_differs: 'The serial numbers differ.',
  chain_missing: 'None yet.',
  chain_refused: 'Rejected.',
  chain_stale: 'Too old.',
  chain_of_another_world: 'A simulated enclave with a real certificate, or vice versa.',
  binding_missing: 'No certificate binds this key yet.',
  binding_of_another_nonce: 'The certificate is bound to an earlier nonce.',
  binding_of_another_key: 'The certificate was issued for another key.',
};
