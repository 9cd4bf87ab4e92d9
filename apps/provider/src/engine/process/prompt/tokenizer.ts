/** `tokenizerOf` tokenises long texts in pieces, because llama.cpp's recursive word matcher crashes on words of ten thousand letters. */
import type { Token } from 'node-llama-cpp';

/** Maximum characters per piece: a fraction of what the matcher's stack allows. */
export const MAX_CHARACTERS = 8192;

/** `special`: whether the texts of control tokens become control tokens. */
export type Tokenize = (text: string, special: boolean) => Token[];

/** Cuts texts only for byte-pair encoding: other tokenizers do not use the matcher, or would insert a space before each piece. */
export function tokenizerOf(tokenize: Tokenize, isBytePair: boolean, uncuttable: readonly string[]): Tokenize {
  return isBytePair ? inPieces(tokenize, uncuttable) : tokenize;
}

/** @param uncuttable Texts of single tokens, which must stay in one piece. */
export function inPieces(tokenize: Tokenize, uncuttable: readonly string[]): Tokenize {
  const longest = Math.max(0, ...uncuttable.map(({ length }) => length));
  return (text, special) => {
    if (text.length <= MAX_CHARACTERS) return tokenize(text, special);
    const tokens: Token[] = [];
    for (let from = 0; from < text.length; ) {
      const to = pieceEnd(text, from, uncuttable, longest);
      for (const token of tokenize(text.slice(from, to), special)) tokens.push(token);
      from = to;
    }
    return tokens;
  };
}

/** End of the piece that begins at `from`: the last boundary between words in its second half, if any. */
function pieceEnd(text: string, from: number, uncuttable: readonly string[], longest: number): number {
  const max = from + MAX_CHARACTERS;
  if (max >= text.length) return text.length;
  const min = from + MAX_CHARACTERS / 2;
  for (let at = max; at > min; at--) if (isBetweenWords(text, at) && outsideUncuttable(text, at, uncuttable, longest) === at) return at;
  const at = outsideUncuttable(text, max, uncuttable, longest);
  return isLowSurrogate(text.charCodeAt(at)) ? at - 1 : at;
}

/** Byte-pair tokenizers split before a space between two letters, so a cut there changes no token. */
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
function outsideUncuttable(text: string, at: number, uncuttable: readonly string[], longest: number): number {
  const begin = at - longest;
  const around = text.slice(begin, at + longest);
  for (const each of uncuttable) {
    for (let found = around.indexOf(each); found >= 0; found = around.indexOf(each, found + 1)) {
      if (begin + found < at && begin + found + each.length > at) return begin + found;
    }
  }
  return at;
}
