/**
 * Validation and cleaning of display texts: labels from providers (chips, machines, models), and names that people choose.
 *
 * Labels have no control, formatting or markup characters, so they are safe in headers and pages.
 */
import Type from 'typebox';

/** Control and formatting characters, unpaired surrogates, line and paragraph separators, markup delimiters. */
const FORBIDDEN_IN_LABELS = '\\p{C}\\p{Zl}\\p{Zp}<>&"`\\\\';
const forbiddenInLabels = new RegExp(`[${FORBIDDEN_IN_LABELS}]+`, 'gu');

/** Schema of a label of 1 to `maxLength` characters (code points). */
export function labelSchema(maxLength: number) {
  return Type.String({ minLength: 1, maxLength, pattern: `^[^${FORBIDDEN_IN_LABELS}]+$` });
}

/** Converts a text to a valid label; if nothing remains, returns `fallback`, which must be a valid label. */
export function cleanLabel(text: string, maxLength: number, fallback: string): string {
  const clean = text.normalize('NFC').replace(forbiddenInLabels, ' ').replace(/\s+/g, ' ').trim().slice(0, maxLength);
  // `slice` may have split a surrogate pair.
  return clean.replace(forbiddenInLabels, '').trim() || fallback;
}

/**
 * Control characters, line breaks, unpaired surrogates and direction overrides. Names may contain markup characters, which the
 * renderer must escape.
 */
const FORBIDDEN_IN_NAMES = '\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\u202A-\\u202E\\u2066-\\u2069';
const forbiddenInNames = new RegExp(`[${FORBIDDEN_IN_NAMES}]+`, 'gu');

/** Pattern of a one-line name of an account, key or machine. Allows the empty text. */
export const NAME_PATTERN = `^[^${FORBIDDEN_IN_NAMES}]*$`;
const name = new RegExp(NAME_PATTERN, 'u');

export function isName(text: string): boolean {
  return name.test(text);
}

/** Replaces characters that {@link isName} rejects by spaces. */
export function cleanName(text: string): string {
  return text.replace(forbiddenInNames, ' ').trim();
}
