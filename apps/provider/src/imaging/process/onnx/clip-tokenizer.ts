/**
 * `ClipTokenizer` tokenises prompts for CLIP, the text encoder of latent-diffusion models: in lower case, by byte-pair encoding within
 * words.
 */

import type { ClipVocabulary } from '../../../models/image/clip-vocabulary.js';

interface TokenizedPrompt {
  /** Token ids, padded to the length of the model's input. */
  readonly ids: readonly number[];
  /** Token count without padding. */
  readonly used: number;
}

/** CLIP's own pattern of words. */
const WORDS = /'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+/gu;
/** Longer words are cut, because the cost grows with the square of the length. */
const MAX_WORD_BYTES = 512;

export class ClipTokenizer {
  readonly #vocabulary: ClipVocabulary;
  /** Priority of merges; the lowest rank is merged first. */
  readonly #rankByPair: ReadonlyMap<string, number>;

  constructor(vocabulary: ClipVocabulary) {
    this.#vocabulary = vocabulary;
    this.#rankByPair = new Map(vocabulary.merges.map((pair, rank) => [pair, rank]));
  }

  /** Truncates a prompt longer than the model's input. */
  tokenize(text: string): TokenizedPrompt {
    const { begin, end, padding, length, ids } = this.#vocabulary;
    const tokens = [begin];
    const words = text.normalize('NFC').replace(/\s+/gu, ' ').trim().toLowerCase().matchAll(WORDS);
    for (const [word] of words) {
      if (tokens.length >= length - 1) break;
      // Pieces missing from the vocabulary become the end token, which is also CLIP's unknown token.
      for (const piece of this.#pieces(word)) tokens.push(ids.get(piece) ?? end);
    }
    tokens.length = Math.min(tokens.length, length - 1);
    tokens.push(end);
    const used = tokens.length;
    while (tokens.length < length) tokens.push(padding);
    return { ids: tokens, used };
  }

  /** Splits a word into texts of the vocabulary, by merging neighbours until no merge applies. */
  #pieces(word: string): string[] {
    const bytes = [...new TextEncoder().encode(word)].slice(0, MAX_WORD_BYTES);
    const pieces = bytes.map((byte) => BYTE_NAMES[byte] as string);
    pieces[pieces.length - 1] = `${pieces.at(-1)}</w>`;
    for (;;) {
      let best = -1;
      let bestRank = Number.POSITIVE_INFINITY;
      for (let at = 0; at + 1 < pieces.length; at++) {
        const rank = this.#rankByPair.get(`${pieces[at]} ${pieces[at + 1]}`);
        if (rank === undefined || rank >= bestRank) continue;
        best = at;
        bestRank = rank;
      }
      if (best < 0) return pieces;
      pieces.splice(best, 2, `${pieces[best]}${pieces[best + 1]}`);
    }
  }
}

/** Printable character for each byte: visible bytes map to themselves, others to code points from 256 on. */
const BYTE_NAMES: readonly string[] = byteNames();

function byteNames(): string[] {
  const isVisible = (byte: number): boolean => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let hidden = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isVisible(byte) ? byte : 256 + hidden++));
}
