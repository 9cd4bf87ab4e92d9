/** Parses user codes (RFC 8628, section 6.1): eight letters. Case, spaces and dashes are ignored. */

/** No vowels, so that codes never spell words. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const LENGTH = 8;
const HALF = LENGTH / 2;

type ParsedCode =
  | { readonly kind: 'code' /** Formatted as `WDJB-MJHT`. */; readonly code: string }
  /** `problem`: error message for the user. */
  | { readonly kind: 'refused'; readonly problem: string };

export function parseUserCode(text: string): ParsedCode {
  const letters = text.toUpperCase().replace(/[\s\p{Pd}_.]/gu, '');
  if (letters === '') return refused('Enter the code that the machine shows.');
  const wrong = [...letters].find((letter) => !LETTERS.includes(letter));
  if (wrong !== undefined) return refused(`No code has “${wrong}” in it. Codes have no vowels, no Y and no digits.`);
  if (letters.length !== LENGTH) return refused(`A code has ${LENGTH} letters, and this one has ${letters.length}.`);
  return { kind: 'code', code: `${letters.slice(0, HALF)}-${letters.slice(HALF)}` };
}

function refused(problem: string): ParsedCode {
  return { kind: 'refused', problem };
}
