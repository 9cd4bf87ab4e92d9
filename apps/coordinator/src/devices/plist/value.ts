/** Types and limits of property lists, and `PlistError`. Dictionaries are maps, so untrusted keys reach no prototype. */

export type PlistValue = boolean | number | string | Date | Uint8Array | readonly PlistValue[] | PlistDict;
export type PlistDict = ReadonlyMap<string, PlistValue>;

/** Why a property list was refused. */
export type PlistRefusal =
  /** Larger than `PLIST_LIMITS.bytes`. */
  | 'plist_too_large'
  /** Too deep nesting or too many values; shared values of a binary list count at every use. */
  | 'plist_too_deep'
  | 'plist_too_many_values'
  /** A document type other than Apple's standard line, an internal subset, or an entity beyond XML's own. */
  | 'plist_dtd_refused'
  | 'plist_entity_refused'
  | 'plist_duplicate_key'
  /** Any other malformed input. */
  | 'plist_malformed';

export class PlistError extends Error {
  constructor(readonly code: PlistRefusal) {
    super(code);
    this.name = 'PlistError';
  }
}

export const PLIST_LIMITS = {
  /** A report with a certificate chain is some 8 KiB. */
  bytes: 256 * 1024,
  depth: 16,
  values: 4096,
} as const;

/** Maximum length of a dictionary key, in characters. */
export const MAX_KEY_LENGTH = 256;
