/** Display texts for the parts of provider trust and for the reasons of failure. */
import type { PartState, TrustPartName, TrustReason } from '@inference/protocol';
import type { Tone } from '../../ui/feedback/note.js';

export const PART_WORDS: Readonly<Record<TrustPartName, { readonly label: string; readonly meaning: string }>> = {
  attestation: {
    label: 'Attestation',
    meaning: 'A statement about the machine, signed by its enclave key, less than a day old when it was shown.',
  },
  enclave: {
    label: 'Secure Enclave',
    meaning: 'The machine says that its key lives in its Secure Enclave, from where nobody can copy it.',
  },
  posture: { label: 'Protections', meaning: 'System Integrity Protection and secure boot are on, by the word of the machine.' },
  challenge: {
    label: 'Challenge',
    meaning: 'Every five minutes the key signs a fresh number, so that an old statement cannot be played again.',
  },
  sealing_key: {
    label: 'Sealing key',
    meaning: 'Requests are sealed to a key that lives for an hour at most, bound to the enclave key by a signature.',
  },
  device_management: {
    label: 'Device management',
    meaning: 'The management of the device reported its protections and disk encryption as on.',
  },
  device_identity: { label: 'Device identity', meaning: 'Serial numbers of the attestation and of device management are the same.' },
  device_chain: {
    label: "Maker's certificate",
    meaning: "The maker attested this machine: a chain of certificates up to the maker's own root.",
  },
  key_binding: { label: 'Key binding', meaning: 'The certificate was asked for with a nonce that this enclave key went into.' },
};

export const STATE_WORDS: Readonly<Record<PartState, { readonly label: string; readonly tone: Tone }>> = {
  ok: { label: 'Passed', tone: 'good' },
  missing: { label: 'Not shown', tone: 'neutral' },
  stale: { label: 'Out of date', tone: 'warn' },
  failed: { label: 'Does not hold', tone: 'bad' },
};

export const REASON_WORDS: Readonly<Record<TrustReason, string>> = {
  attestation_missing: 'It has not shown one.',
  attestation_stale: 'It was too old when it was shown.',
  no_secure_enclave: 'The key is kept in software.',
  sip_disabled: 'System Integrity Protection is off.',
  secure_boot_disabled: 'Secure boot is not at full security.',
  challenge_unanswered: 'None was answered on this connection yet.',
  challenge_missed: 'The last one was not answered in time.',
  challenge_stale: 'None was answered for too long.',
  sealing_key_missing: 'It has shown none.',
  sealing_key_expired: 'It has expired.',
  evidence_of_another_key: 'The evidence belongs to another enclave key.',
  not_enrolled: 'The machine is not enrolled.',
  security_info_missing: 'There is no report yet.',
  security_info_stale: 'The last report is more than a day old.',
  managed_sip_disabled: 'It reported System Integrity Protection as off.',
  managed_secure_boot_not_full: 'It reported reduced boot security.',
  managed_disk_encryption_off: 'It reported disk encryption as off.',
  managed_root_volume_unsealed: 'It reported that the system volume is not sealed.',
  device_information_missing: 'It has not been read yet.',
  device_information_incomplete: 'Some identifiers were not told.',
  serial_number_differs: 'The serial numbers differ.',
  chain_missing: 'There is none yet.',
  chain_refused: 'It was refused.',
  chain_stale: 'It is too old.',
  chain_of_another_world: 'A simulated enclave with a real certificate, or the other way round.',
  binding_missing: 'No certificate binds this key yet.',
  binding_of_another_nonce: 'The certificate is bound to an earlier nonce.',
  binding_of_another_key: 'The certificate was made for another key.',
};
