/** Reasons for refusing a device certificate chain, in order. All verifiers stop at the first match, so results agree. */

/** Machine facts in a leaf certificate, each in its own extension. */
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
  /** Not exactly one leaf and one issuer. The anchor is never sent. */
  'chain_count',
  'chain_too_large',
  'base64_not_canonical',
  /** Not DER: an indefinite or needlessly long length, a number with needless bytes, a value cut short, … */
  'der_malformed',
  'der_trailing_bytes',
  /** DER, but no X.509 version 3 certificate. */
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
  /** Anything but ECDSA with SHA-384. */
  'signature_algorithm',
  /** Anything but a point of P-384. */
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
  'duplicate_extension',
  'unknown_critical_extension',
  /** Extended key usage present, but not device attestation. */
  'extended_key_usage',
  /** The common name is not the hash of the leaf's key. */
  'common_name',
] as const;

const FACTS = [
  'serial_mismatch',
  'udid_mismatch',
  'board_mismatch',
  /** The device identifier names another chip than the machine claims. */
  'chip_mismatch',
  'sip_disabled',
  'secure_boot_reduced',
  'kexts_allowed',
  /** The freshness code differs from the code for this enclave key's nonce. */
  'freshness_mismatch',
  'too_old',
] as const;

const MISSING = DEVICE_FIELDS.map((field) => `${field}_missing` as const);
/** Extensions in another than the only valid form. */
const MALFORMED = DEVICE_FIELDS.map((field) => `${field}_malformed` as const);

export const CHAIN_REJECTIONS = [...SHAPE, ...PATH, ...EXTENSIONS, ...MISSING, ...MALFORMED, ...FACTS] as const;
export type ChainRejection = (typeof CHAIN_REJECTIONS)[number];
