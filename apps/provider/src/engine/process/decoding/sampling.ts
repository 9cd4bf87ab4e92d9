/**
 * `samplerConfig` converts a request's sampling parameters to those of llama.cpp's samplers.
 *
 * Always sets a seed: without one, the library takes the clock, and streams of the same second would draw the same numbers.
 */
import { randomInt } from 'node:crypto';
import type { Sampling } from '../../messages.js';
import type { SamplerConfig } from '../native.js';

/** llama.cpp replaces this seed by a random seed. */
const RANDOM_SEED = 0xffff_ffff;

/** `limit`: maximum generated tokens. Penalties cover all of them, and no prompt tokens. */
export function samplerConfig(sampling: Sampling, limit: number): SamplerConfig {
  const { topK, topP, minP, logitBias, frequencyPenalty, presencePenalty, repetitionPenalty = 1 } = sampling;
  const penalised = frequencyPenalty !== 0 || presencePenalty !== 0 || repetitionPenalty !== 1;
  return {
    temperature: sampling.temperature,
    seed: sampling.seed === null ? randomInt(RANDOM_SEED) : seed32(sampling.seed),
    // Left out if off: with a top-k of 0, llama.cpp sorts the whole vocabulary for every token.
    ...(topK === null ? {} : { topK }),
    ...(topP === null ? {} : { topP }),
    ...(minP === null ? {} : { minP }),
    ...(penalised
      ? {
          repeatPenalty: repetitionPenalty,
          repeatPenaltyTokens: new Uint32Array(0),
          repeatPenaltyMaxTokens: limit,
          repeatPenaltyFrequencyPenalty: frequencyPenalty,
          repeatPenaltyPresencePenalty: presencePenalty,
        }
      : {}),
    ...(logitBias.length === 0
      ? {}
      : {
          tokenBiasKeys: Uint32Array.from(logitBias, ([token]) => token),
          tokenBiasValues: Float32Array.from(logitBias, ([, bias]) => bias),
        }),
  };
}

/** Folds any integer into 32 bits, avoiding the value that llama.cpp treats as random. */
function seed32(seed: number): number {
  const folded = Number(BigInt.asUintN(32, BigInt(Math.trunc(seed))));
  return folded === RANDOM_SEED ? RANDOM_SEED - 1 : folded;
}

/** llama.cpp rejected the grammar. The reason may quote the client's schema and is dropped. */
export class GrammarError extends Error {
  constructor() {
    super('llama.cpp rejected the grammar');
    this.name = 'GrammarError';
  }
}
