/**
 * Property lists as values of our own: dictionaries are maps, so that no key of a stranger ever meets a prototype, and every
 * refusal is one of a closed list.
 */

export type PlistValue = boolean | number | string | Date | Uint8Array | readonly PlistValue[] | PlistDict;
export type PlistDict = ReadonlyMap<string, PlistValue>;

/** Why a property list was refused. */
export type PlistRefusal =
  /** Larger than {@link PLIST_LIMITS} allows. */
  | 'plist_too_large'
  /** Nested deeper, or made of more values, than allowed; shared values of a binary list count as often as they are used. */
  | 'plist_too_deep'
  | 'plist_too_many_values'
  /** A document type other than the maker's plain line, an internal subset, or an entity that XML itself does not define. */
  | 'plist_dtd_refused'
  | 'plist_entity_refused'
  | 'plist_duplicate_key'
  /** Anything else that is not a property list. */
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

/** A dictionary key longer than this, in characters, is refused. */
export const MAX_KEY_LENGTH = 256;
