/**
 * Texts that a provider chooses and that strangers see: names of chips, machines and models. They are bounded, and hold no
 * control or formatting characters, no line breaks and no characters that markup is made of, so that no page, log or
 * terminal that shows them can be led astray.
 */
import Type from 'typebox';

/** Control, formatting and unpaired characters, line and paragraph separators, and what begins or ends markup. */
const REFUSED = '\\p{C}\\p{Zl}\\p{Zp}<>&"`\\\\';
const refused = new RegExp(`[${REFUSED}]+`, 'gu');

/** Schema of such a text, of 1 to `maxLength` UTF-16 units. */
export function labelSchema(maxLength: number) {
  return Type.String({ minLength: 1, maxLength, pattern: `^[^${REFUSED}]+$` });
}

/** The nearest text that {@link labelSchema} takes; `fallback` (which must be one) where nothing is left. */
export function cleanLabel(text: string, maxLength: number, fallback: string): string {
  const clean = text.normalize('NFC').replace(refused, ' ').replace(/\s+/g, ' ').trim().slice(0, maxLength);
  // The cut may have halved a character.
  return clean.replace(refused, '').trim() || fallback;
}

/**
 * Control characters, line breaks, unpaired surrogates, and marks that turn the direction of what follows. People's own names may
 * hold all else: markup is for whoever shows them to escape.
 */
const REFUSED_IN_NAMES = '\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\u202A-\\u202E\\u2066-\\u2069';
const refusedInNames = new RegExp(`[${REFUSED_IN_NAMES}]+`, 'gu');

/** Pattern of a name that people give to themselves or to what they own, of one line. */
export const NAME_PATTERN = `^[^${REFUSED_IN_NAMES}]*$`;
const name = new RegExp(NAME_PATTERN, 'u');

export function isName(text: string): boolean {
  return name.test(text);
}

/** The nearest text that {@link isName} takes. */
export function cleanName(text: string): string {
  return text.replace(refusedInNames, ' ').trim();
}
