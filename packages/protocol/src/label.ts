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
