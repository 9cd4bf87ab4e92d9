/**
 * Trains a byte-level BPE vocabulary from texts, so that a random-weight model tokenizes ordinary text about as compactly as a real
 * model. Deterministic.
 */
import { byteLetters, SPECIAL_TOKENS, type Vocabulary } from './tokenizer.js';

/** Pre-tokenization pattern of `qwen2`: merges never cross a boundary. */
const WORDS =
  /'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu;
/** Minimum occurrences of a pair worth a token. */
const MIN_COUNT = 2;
const PAIR_BASE = 1 << 20;

interface Word {
  readonly count: number;
  symbols: number[];
}

/** The bytes, learned tokens up to `size` in total, and the special tokens. */
export function trainVocabulary(texts: Iterable<string>, size: number): Vocabulary {
  const letters = byteLetters();
  const tokens = [...letters];
  const merges: [string, string][] = [];
  const pairs = new Pairs(readWords(texts));
  while (tokens.length + SPECIAL_TOKENS.length < size) {
    const best = pairs.mostFrequent();
    if (best === null) break;
    const [left, right] = [tokens[best.left] as string, tokens[best.right] as string];
    pairs.merge(best.left, best.right, tokens.length);
    merges.push([left, right]);
    tokens.push(left + right);
  }
  return { tokens: [...tokens, ...SPECIAL_TOKENS], merges };
}

function readWords(texts: Iterable<string>): Word[] {
  const counts = new Map<string, number>();
  for (const text of texts) for (const [word] of text.matchAll(WORDS)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].map(([word, count]) => ({ count, symbols: [...Buffer.from(word, 'utf8')] }));
}

/** Every adjacent pair with its count and the words that contain the pair. */
class Pairs {
  readonly #counts = new Map<number, number>();
  readonly #holders = new Map<number, Set<Word>>();

  constructor(words: readonly Word[]) {
    for (const word of words) this.#add(word, 1);
  }

  /** Null when no pair is frequent enough. Ties go to the pair seen first. */
  mostFrequent(): { left: number; right: number } | null {
    let best = -1;
    let max = MIN_COUNT - 1;
    for (const [pair, count] of this.#counts) {
      if (count <= max) continue;
      best = pair;
      max = count;
    }
    return best < 0 ? null : { left: Math.floor(best / PAIR_BASE), right: best % PAIR_BASE };
  }

  merge(left: number, right: number, merged: number): void {
    for (const word of [...(this.#holders.get(left * PAIR_BASE + right) ?? [])]) {
      this.#add(word, -1);
      word.symbols = joined(word.symbols, left, right, merged);
      this.#add(word, 1);
    }
  }

  #add(word: Word, sign: 1 | -1): void {
    const { count, symbols } = word;
    for (let at = 1; at < symbols.length; at++) {
      const pair = (symbols[at - 1] as number) * PAIR_BASE + (symbols[at] as number);
      const next = (this.#counts.get(pair) ?? 0) + sign * count;
      if (next > 0) this.#counts.set(pair, next);
      else this.#counts.delete(pair);
      const holders = this.#holders.get(pair) ?? new Set();
      if (sign > 0) holders.add(word);
      else holders.delete(word);
      if (holders.size > 0) this.#holders.set(pair, holders);
      else this.#holders.delete(pair);
    }
  }
}

function joined(symbols: readonly number[], left: number, right: number, merged: number): number[] {
  const result: number[] = [];
  for (let at = 0; at < symbols.length; at++) {
    const matches = symbols[at] === left && symbols[at + 1] === right;
    result.push(matches ? merged : (symbols[at] as number));
    if (matches) at++;
  }
  return result;
}
