/**
 * Reasons for rejecting a device certificate chain, in the order of the checks.
 *
 * All verifiers report the first match in this order, so their results agree.
 */

/** Facts about the machine in a leaf certificate. Each has its own extension. */
export const DEVICE_FIELDS = [
  'serial',
  'udid',
  'board',
  'os_version',
  'sepos_version',
  'llb_version',
  'freshness',
  'sip',
  'secure_boot',
  'kexts',
] as const;
export type DeviceField = (typeof DEVICE_FIELDS)[number];

const SHAPE = [
  /** The chain is not exactly one leaf and one issuer. The anchor is never part of it. */
  'chain_count',
  'chain_too_large',
  'base64_not_canonical',
  /** Not DER, for example an indefinite length, a non-minimal length or integer, or a truncated value. */
  'der_malformed',
  'der_trailing_bytes',
  /** DER, but not an X.509 version 3 certificate. */
  'certificate_malformed',
] as const;

const PATH = [
  'leaf_is_ca',
  'leaf_constraints_missing',
  'leaf_key_usage',
  'issuer_not_ca',
  'issuer_key_usage',
  'issuer_path_length',
  'names_not_chained',
  /** Not ECDSA with SHA-384. */
  'signature_algorithm',
  /** Not a P-384 public key. */
  'leaf_key_unsupported',
  'issuer_key_unsupported',
  'leaf_signature',
  'leaf_not_yet_valid',
  'leaf_expired',
  'issuer_not_yet_valid',
  'issuer_expired',
  'anchor_name',
  'anchor_signature',
] as const;

const EXTENSIONS = [
  'unknown_critical_extension',
  'duplicate_extension',
  /** Extended key usage present, but not device attestation. */
  'extended_key_usage',
  /** The common name is not the hash of the leaf's key. */
  'common_name',
] as const;

const FACTS = [
  'serial_mismatch',
  'udid_mismatch',
  'board_mismatch',
  /** The device identifier names a different chip than the machine claims. */
  'chip_mismatch',
  'sip_disabled',
  'secure_boot_reduced',
  'kexts_allowed',
  /** The freshness code does not match the nonce for this enclave key. */
  'freshness_mismatch',
  'too_old',
] as const;

const MISSING = DEVICE_FIELDS.map((field) => `${field}_missing` as const);
/** The extension is present, but its value has the wrong format. */
const MALFORMED = DEVICE_FIELDS.map((field) => `${field}_malformed` as const);

export const CHAIN_REJECTIONS = [...SHAPE, ...PATH, ...EXTENSIONS, ...MISSING, ...MALFORMED, ...FACTS] as const;
export type ChainRejection = (typeof CHAIN_REJECTIONS)[number];
