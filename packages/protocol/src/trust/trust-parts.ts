/** Components of a provider's trust level, and reasons why a component fails. Both are published. */

export const SELF_SIGNED_PARTS = ['attestation', 'enclave', 'posture', 'challenge', 'sealing_key'] as const;
/** Additional components required for `hardware`. */
export const HARDWARE_PARTS = ['device_management', 'device_identity', 'device_chain', 'key_binding'] as const;
export const TRUST_PARTS = [...SELF_SIGNED_PARTS, ...HARDWARE_PARTS] as const;
export type TrustPartName = (typeof TRUST_PARTS)[number];

const HARDWARE_PART_NAMES: ReadonlySet<string> = new Set(HARDWARE_PARTS);

/**
 * Parts that need action: all parts that are not `ok`, in the same order.
 *
 * Of missing hardware parts, only the first is included, because the later ones depend on it.
 */
export function actionableParts<Part extends { readonly name: string; readonly state: string }>(parts: readonly Part[]): Part[] {
  const firstMissing = parts.find(({ name, state }) => state === 'missing' && HARDWARE_PART_NAMES.has(name));
  return parts.filter(
    (part) => part.state !== 'ok' && (part.state !== 'missing' || !HARDWARE_PART_NAMES.has(part.name) || part === firstMissing),
  );
}

/** `missing`: no evidence; `stale`: evidence expired; `failed`: evidence is wrong. */
export const PART_STATES = ['ok', 'missing', 'stale', 'failed'] as const;
export type PartState = (typeof PART_STATES)[number];

export const TRUST_REASONS = [
  'attestation_missing',
  'attestation_stale',
  'no_secure_enclave',
  'sip_disabled',
  'secure_boot_disabled',
  'challenge_unanswered',
  /** The newest challenge was missed. The part stays `ok` until too many challenges are missed. */
  'challenge_missed',
  'challenge_stale',
  'sealing_key_missing',
  'sealing_key_expired',
  /** The evidence was collected for another enclave key. */
  'evidence_of_another_key',
  'not_enrolled',
  'security_info_missing',
  'security_info_stale',
  'managed_sip_disabled',
  'managed_secure_boot_not_full',
  'managed_disk_encryption_off',
  'managed_root_volume_unsealed',
  'device_information_missing',
  'device_information_incomplete',
  'serial_number_differs',
  'chain_missing',
  'chain_refused',
  'chain_stale',
  /** A simulated enclave has a real chain, or a real enclave a simulated chain. */
  'chain_of_another_world',
  'binding_missing',
  'binding_of_another_nonce',
  'binding_of_another_key',
] as const;
export type TrustReason = (typeof TRUST_REASONS)[number];

export type TrustLevel = 'self_signed' | 'hardware';
