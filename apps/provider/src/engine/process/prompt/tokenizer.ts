/** Tokenises long texts in pieces, because llama.cpp's recursive matcher would crash on words of ten thousand letters. */
import type { Token } from 'node-llama-cpp';

/** Characters per piece: a fraction of the matcher's stack limit. */
export const MAX_CHARACTERS = 8192;

export type Tokenize = (text: string, special: boolean) => Token[];

/** Cuts texts only for byte-pair encoding. Other vocabulary types have no such matcher, or insert a space before each piece. */
export function tokenizerOf(tokenize: Tokenize, isBytePair: boolean, whole: readonly string[]): Tokenize {
  return isBytePair ? inPieces(tokenize, whole) : tokenize;
}

/** @param whole Texts of single tokens, which must not be cut. */
export function inPieces(tokenize: Tokenize, whole: readonly string[]): Tokenize {
  const longest = Math.max(0, ...whole.map(({ length }) => length));
  return (text, special) => {
    if (text.length <= MAX_CHARACTERS) return tokenize(text, special);
    const tokens: Token[] = [];
    for (let from = 0; from < text.length; ) {
      const to = cutAfter(text, from, whole, longest);
      for (const token of tokenize(text.slice(from, to), special)) tokens.push(token);
      from = to;
    }
    return tokens;
  };
}

/** End of the piece that begins at `from`: a word boundary in its second half, if any. */
function cutAfter(text: string, from: number, whole: readonly string[], longest: number): number {
  const max = from + MAX_CHARACTERS;
  if (max >= text.length) return text.length;
  const min = from + MAX_CHARACTERS / 2;
  for (let at = max; at > min; at--) if (isBetweenWords(text, at) && uncut(text, at, whole, longest) === at) return at;
  const at = uncut(text, max, whole, longest);
  return isLowSurrogate(text.charCodeAt(at)) ? at - 1 : at;
}

/** All byte-pair tokenizers split before a space between two letters, so a cut there changes no token. */
function isBetweenWords(text: string, at: number): boolean {
  return text[at] === ' ' && isLetter(text[at - 1]) && isLetter(text[at + 1]);
}

function isLetter(character: string | undefined): boolean {
  return character !== undefined && /\p{L}/u.test(character);
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** `at`, or the start of an uncuttable text around `at`. */
function uncut(text: string, at: number, whole: readonly string[], longest: number): number {
  const begin = at - longest;
  const around = text.slice(begin, at + longest);
  for (const each of whole) {
    for (let found = around.indexOf(each); found >= 0; found = around.indexOf(each, found + 1)) {
      if (begin + found < at && begin + found + each.length > at) return begin + found;
    }
  }
  return at;
}
