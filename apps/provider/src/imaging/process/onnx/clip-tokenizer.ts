/**
 * The tokenizer of CLIP, which nearly all latent-diffusion models read prompts with: lower case, byte pairs within words, whose
 * last piece carries the mark `</w>`. Made from the `vocab.json` and `merges.txt` of a model's folder, or from the same two in a
 * `tokenizer.json`.
 */

import type { ClipVocabulary } from '../../../models/image/clip-vocabulary.js';

export interface TokenizedPrompt {
  /** Filled up to the vocabulary's length. */
  readonly ids: readonly number[];
  /** Without what it was filled up with. */
  readonly used: number;
}

const WORDS = /'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+/gu;
/** A piece without a space in between is worked through pair by pair, at a cost that grows with its square. */
const LONGEST_WORD = 512;

export class ClipTokenizer {
  readonly #vocabulary: ClipVocabulary;
  readonly #ranks: ReadonlyMap<string, number>;

  constructor(vocabulary: ClipVocabulary) {
    this.#vocabulary = vocabulary;
    this.#ranks = new Map(vocabulary.merges.map((pair, rank) => [pair, rank]));
  }

  /** Of a prompt that is longer than the model reads, the beginning. */
  tokenize(text: string): TokenizedPrompt {
    const { begin, end, padding, length, ids } = this.#vocabulary;
    const tokens = [begin];
    const words = text.normalize('NFC').replace(/\s+/gu, ' ').trim().toLowerCase().matchAll(WORDS);
    for (const [word] of words) {
      if (tokens.length >= length - 1) break;
      // A piece that the vocabulary lacks stands for nothing, as where the end stands for the unknown.
      for (const piece of this.#pieces(word)) tokens.push(ids.get(piece) ?? end);
    }
    tokens.length = Math.min(tokens.length, length - 1);
    tokens.push(end);
    const used = tokens.length;
    while (tokens.length < length) tokens.push(padding);
    return { ids: tokens, used };
  }

  #pieces(word: string): string[] {
    const bytes = [...new TextEncoder().encode(word)].slice(0, LONGEST_WORD);
    const pieces = bytes.map((byte) => BYTE_NAMES[byte] as string);
    pieces[pieces.length - 1] = `${pieces.at(-1)}</w>`;
    for (;;) {
      let best = -1;
      let bestRank = Number.POSITIVE_INFINITY;
      for (let at = 0; at + 1 < pieces.length; at++) {
        const rank = this.#ranks.get(`${pieces[at]} ${pieces[at + 1]}`);
        if (rank === undefined || rank >= bestRank) continue;
        best = at;
        bestRank = rank;
      }
      if (best < 0) return pieces;
      pieces.splice(best, 2, `${pieces[best]}${pieces[best + 1]}`);
    }
  }
}

/** What byte-level vocabularies write for each byte: itself where it is a visible character, else one of those from 256 on. */
const BYTE_NAMES: readonly string[] = byteNames();

function byteNames(): string[] {
  const isVisible = (byte: number): boolean => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let hidden = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isVisible(byte) ? byte : 256 + hidden++));
}
