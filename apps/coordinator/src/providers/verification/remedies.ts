/** `remedyFor`: advice to the owner of a Mac, by the reason in a part of its trust evaluation. */
import type { ChainRejection, TrustReason } from '@inference/protocol';

export const REMEDIES: Readonly<Record<TrustReason, string>> = {
  attestation_missing: 'The machine has sent no attestation yet. If this persists, restart the provider.',
  attestation_stale:
    'The attestation was older than a day when it arrived. Check that the clock of this Mac is right, then restart the provider.',
  no_secure_enclave: 'The key is not kept in a Secure Enclave. Run the provider on a Mac with Apple silicon and its enclave helper.',
  sip_disabled: 'System Integrity Protection is off. Start in recovery mode, run "csrutil enable" in Terminal, and restart.',
  secure_boot_disabled:
    'Secure boot is not at full security. Start in recovery mode, open Startup Security Utility and choose Full Security.',
  challenge_unanswered: 'No challenge was answered on this connection yet. This resolves within seconds; if not, restart the provider.',
  challenge_missed:
    'The last challenge was not answered in time. Keep the Mac awake and its network stable; after three misses in a row, the connection is closed.',
  challenge_stale: 'No challenge was answered for too long. Keep the Mac awake and its network stable.',
  sealing_key_missing: 'The provider has shown no sealing key. Restart the provider.',
  sealing_key_expired: 'The sealing key has expired and no new one came. Restart the provider; check that the clock of this Mac is right.',
  evidence_of_another_key: 'This evidence belongs to another enclave key. Enrol this Mac again; keep the data directory of the provider.',
  not_enrolled:
    'This Mac is not enrolled in device management. Run "inference-provider setup --enrol" and follow the steps to install the profile.',
  security_info_missing:
    'Device management has not reported on this Mac yet. Keep it awake and online; open System Settings to see the profile.',
  security_info_stale:
    'Device management has not heard from this Mac for a day. Keep it awake and online, and check that the profile is installed.',
  managed_sip_disabled:
    'Device management reports that System Integrity Protection is off. Turn it on in recovery mode with "csrutil enable".',
  managed_secure_boot_not_full:
    'Device management reports reduced boot security. Choose Full Security in Startup Security Utility (recovery mode).',
  managed_disk_encryption_off: 'FileVault is off. Turn it on in System Settings, Privacy & Security.',
  managed_root_volume_unsealed:
    'Device management reports that the system volume is not sealed. In recovery mode run "csrutil authenticated-root enable", and reinstall macOS if that fails.',
  device_information_missing: 'Device management has not read the identity of this Mac yet. Keep it awake and online.',
  device_information_incomplete: 'This Mac did not report all of its identifiers to device management. Update macOS, then enrol again.',
  serial_number_differs:
    'The serial numbers of attestation, device management and certificate differ. Enrol this Mac with its own profile.',
  chain_missing: 'Apple has not attested this Mac to device management yet. This can take an hour; the request is repeated automatically.',
  chain_refused: 'The certificate that attests this Mac was refused. If its protections are on, remove the profile and enrol again.',
  chain_stale: 'The certificate that attests this Mac is too old. A new one is requested automatically; keep the Mac awake and online.',
  chain_of_another_world:
    'A simulated enclave cannot use a real certificate, nor a real enclave a simulated one. This coordinator or this provider runs a simulation.',
  binding_missing: 'No certificate binds this enclave key yet. It is requested automatically; keep the Mac awake and online.',
  binding_of_another_nonce:
    'Apple returned an earlier certificate, which is bound to an older nonce. A new one is issued about once a week and requested automatically.',
  binding_of_another_key:
    'The certificate was made for another enclave key. Keep the data directory of the provider; a new one is requested automatically.',
};

const CHAIN_REMEDIES: Partial<Record<ChainRejection, string>> = {
  sip_disabled: REMEDIES.sip_disabled,
  secure_boot_reduced: REMEDIES.secure_boot_disabled,
  kexts_allowed: 'Third-party kernel extensions are allowed. Forbid them in Startup Security Utility (recovery mode).',
  serial_mismatch: REMEDIES.serial_number_differs,
  udid_mismatch: REMEDIES.serial_number_differs,
  board_mismatch: REMEDIES.serial_number_differs,
  chip_mismatch: 'The chip that the provider claims is not the chip of this Mac. Run the unmodified enclave helper.',
};

/** Advice for a reason. For a rejected certificate chain, by the cause of the rejection. */
export function remedyFor(reason: TrustReason, detail: ChainRejection | null): string {
  return (reason === 'chain_refused' && detail !== null ? CHAIN_REMEDIES[detail] : undefined) ?? REMEDIES[reason];
}
