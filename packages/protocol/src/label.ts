/** Names of chips, machines and models, chosen by providers. Without control, formatting or markup characters, so safe to display. */
import Type from 'typebox';

/** Control, formatting and unpaired characters, line and paragraph separators, markup delimiters. */
const REFUSED = '\\p{C}\\p{Zl}\\p{Zp}<>&"`\\\\';
const refused = new RegExp(`[${REFUSED}]+`, 'gu');

/** Schema of such a text, of 1 to `maxLength` UTF-16 units. */
export function labelSchema(maxLength: number) {
  return Type.String({ minLength: 1, maxLength, pattern: `^[^${REFUSED}]+$` });
}

/** Nearest text that {@link labelSchema} accepts; `fallback` (a valid label) when nothing remains. */
export function cleanLabel(text: string, maxLength: number, fallback: string): string {
  const clean = text.normalize('NFC').replace(refused, ' ').replace(/\s+/g, ' ').trim().slice(0, maxLength);
  // The cut may have halved a character.
  return clean.replace(refused, '').trim() || fallback;
}

/**
 * Control characters, line breaks, unpaired surrogates and direction overrides. Personal names may contain markup characters:
 * escaping is the renderer's task.
 */
const REFUSED_IN_NAMES = '\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\u202A-\\u202E\\u2066-\\u2069';
const refusedInNames = new RegExp(`[${REFUSED_IN_NAMES}]+`, 'gu');

/** Pattern of a one-line name that people give themselves or their property. */
export const NAME_PATTERN = `^[^${REFUSED_IN_NAMES}]*$`;
const name = new RegExp(NAME_PATTERN, 'u');

export function isName(text: string): boolean {
  return name.test(text);
}

/** Nearest text that {@link isName} accepts. */
export function cleanName(text: string): string {
  return text.replace(refusedInNames, ' ').trim();
}
