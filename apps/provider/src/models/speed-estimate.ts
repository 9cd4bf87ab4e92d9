/**
 * What a machine may reach with a model, from arithmetic: to write a token, every weight that takes part is read once, so
 * the memory's bandwidth sets the pace. An estimate for owners who choose, and nothing that anybody is paid by.
 */
import type { ModelFacts } from './model-facts.js';

/** Part of the bandwidth that llama.cpp reaches on Apple silicon with one stream, seen in published measurements. */
const REACHED = 0.7;

/** Tokens per second of one stream; null when the bandwidth (GB/s) is not known. */
export function estimatedTokensPerSecond({ activeBytes }: Pick<ModelFacts, 'activeBytes'>, bandwidthGbs: number): number | null {
  if (bandwidthGbs <= 0 || activeBytes <= 0) return null;
  return (REACHED * bandwidthGbs * 1e9) / activeBytes;
}
