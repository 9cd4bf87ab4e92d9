/** Types and limits of property lists, and `PlistError`. */

export type PlistValue = boolean | number | string | Date | Uint8Array | readonly PlistValue[] | PlistDict;
export type PlistDict = ReadonlyMap<string, PlistValue>;

export type PlistRefusal =
  /** Larger than `PLIST_LIMITS.bytes`. */
  | 'plist_too_large'
  /** Nested too deeply, or too many values. In a binary list, shared values count once per use. */
  | 'plist_too_deep'
  | 'plist_too_many_values'
  /** A document type other than Apple's standard one, an internal subset, or an entity that XML does not predefine. */
  | 'plist_dtd_refused'
  | 'plist_entity_refused'
  | 'plist_duplicate_key'
  | 'plist_malformed';

export class PlistError extends Error {
  constructor(readonly code: PlistRefusal) {
    super(code);
    this.name = 'PlistError';
  }
}

export const PLIST_LIMITS = {
  /** A report with a certificate chain has some 8 KiB. */
  bytes: 256 * 1024,
  depth: 16,
  values: 4096,
} as const;

export const MAX_KEY_LENGTH = 256;
