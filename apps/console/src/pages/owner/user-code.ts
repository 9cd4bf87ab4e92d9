/** Codes that a machine shows to its owner (RFC 8628, section 6.1): eight letters, typed in any case, with or without the dash. */

/** Letters that codes are made of: no vowels, so that no word comes out. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const LENGTH = 8;
const HALF = LENGTH / 2;

type TypedCode =
  | { readonly kind: 'code' /** As it is shown: `WDJB-MJHT`. */; readonly code: string }
  /** A sentence for whoever typed it. */
  | { readonly kind: 'refused'; readonly problem: string };

export function readUserCode(text: string): TypedCode {
  const letters = text.toUpperCase().replace(/[\s\p{Pd}_.]/gu, '');
  if (letters === '') return refused('Enter the code that the machine shows.');
  const wrong = [...letters].find((letter) => !LETTERS.includes(letter));
  if (wrong !== undefined) return refused(`No code has “${wrong}” in it. Codes have no vowels, no Y and no digits.`);
  if (letters.length !== LENGTH) return refused(`A code has ${LENGTH} letters, and this one has ${letters.length}.`);
  return { kind: 'code', code: `${letters.slice(0, HALF)}-${letters.slice(HALF)}` };
}

function refused(problem: string): TypedCode {
  return { kind: 'refused', problem };
}
