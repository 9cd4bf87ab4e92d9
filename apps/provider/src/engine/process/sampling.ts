/**
 * Sampling settings as node-llama-cpp takes them, made once per stream. Defaults of its own (top-k 40, top-p 0.95, the
 * clock as seed) are switched off: two streams that begin in the same second must not draw the same numbers.
 */
import { randomInt } from 'node:crypto';
import type { SequenceEvaluateOptions, Token } from 'node-llama-cpp';
import type { Sampling } from '../messages.js';

export interface SamplingOptions {
  readonly options: SequenceEvaluateOptions;
  /** Present when penalties need to know what was generated; the caller adds each token. */
  readonly generated: Token[] | null;
}

/** Leaves the top-k step out. 0 would keep it, and sort the whole vocabulary for every token. */
const NO_TOP_K = null as unknown as number;

/** llama.cpp reads this seed as "choose one yourself". */
const RANDOM_SEED = 0xffff_ffff;

/** `limit`: most tokens the stream will generate; penalties look back over all of them. */
export function samplingOptions(sampling: Sampling, limit: number): SamplingOptions {
  const options: SequenceEvaluateOptions = {
    temperature: sampling.temperature,
    topK: sampling.topK ?? NO_TOP_K,
    topP: sampling.topP ?? 1,
    minP: 0,
    seed: sampling.seed === null ? randomInt(RANDOM_SEED) : seed32(sampling.seed),
    yieldEogToken: false,
  };
  if (sampling.frequencyPenalty === 0 && sampling.presencePenalty === 0) return { options, generated: null };
  const generated: Token[] = [];
  options.repeatPenalty = {
    penalty: 1,
    frequencyPenalty: sampling.frequencyPenalty,
    presencePenalty: sampling.presencePenalty,
    punishTokens: () => generated,
    maxPunishTokens: limit,
  };
  return { options, generated };
}

/** Folds any integer into the 32 bits that llama.cpp takes, around the one value it treats as random. */
export function seed32(seed: number): number {
  const folded = Number(BigInt.asUintN(32, BigInt(Math.trunc(seed))));
  return folded === RANDOM_SEED ? RANDOM_SEED - 1 : folded;
}
