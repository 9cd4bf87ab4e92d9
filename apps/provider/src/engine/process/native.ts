/**
 * Interfaces to llama.cpp that decode and sample a batch in one trip to the compute thread.
 *
 * For text models, they are internal classes of node-llama-cpp, which only this file accesses. `engine/vision` has its own classes.
 */
import type { Grammar } from '@inference/json-schema-grammar/grammar';
import type { LlamaContext, LlamaGrammarEvaluationState, LlamaModel, Token } from 'node-llama-cpp';

/** Alternating tokens and values. */
export type Pairs = readonly number[];
/** `weight`: sum of exp(logit − greatest logit) over all tokens. */
type Sampled = readonly [token: number, probabilities?: Pairs, confidence?: number, logits?: Pairs, weight?: number];

/** Sampler of one generation. Stores the drawn tokens, on which penalties and grammars depend. */
export interface NativeSampler {
  applyConfig(config: SamplerConfig): void;
  dispose(): void;
}

/** Options of node-llama-cpp's `applyConfig`. */
export interface SamplerConfig {
  readonly temperature: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly minP?: number;
  readonly seed?: number;
  readonly repeatPenalty?: number;
  readonly repeatPenaltyTokens?: Uint32Array;
  readonly repeatPenaltyMaxTokens?: number;
  readonly repeatPenaltyPresencePenalty?: number;
  readonly repeatPenaltyFrequencyPenalty?: number;
  readonly tokenBiasKeys?: Uint32Array;
  readonly tokenBiasValues?: Float32Array;
  readonly grammarEvaluationState?: unknown;
}

/** One llama.cpp context. Between `initBatch` and the end of `decodeBatch`, only `addToBatch` and `sampleToken` may be called. */
export interface NativeContext {
  /** Begins a batch of up to `tokens` tokens. */
  initBatch(tokens: number): void;
  /** Adds tokens of a sequence, from a position. Returns the batch index of each token that `withLogits` lists by index, for sampling. */
  addToBatch(sequence: number, position: number, tokens: Uint32Array, withLogits: Uint32Array): Uint32Array;
  decodeBatch(): Promise<void>;
  /** Resolves to -1 if nothing could be sampled. */
  sampleToken(batchIndex: number, sampler: NativeSampler): Promise<number>;
  sampleToken(
    batchIndex: number,
    sampler: NativeSampler,
    probabilities: boolean,
    confidence: boolean,
    logits: readonly [filter: readonly number[], max: boolean, min: boolean, selected: boolean, top: number],
    weight: boolean,
  ): Promise<Sampled>;
  /** Clears a sequence. */
  disposeSequence(sequence: number): void;
  /** Removes positions from `start` up to, not including, `end` (-1: the last). False if unsupported; the sequence is then unusable. */
  removeTokenCellsFromSequence(sequence: number, start: number, end: number): boolean;
  /** Lowest cached position; negative if none. Models with a sliding window drop the oldest. */
  getSequenceKvCacheMinPosition(sequence: number): number;
}

export interface NativeSamplers {
  newSampler(config: SamplerConfig): NativeSampler;
  /** Value for `grammarEvaluationState` of one sampler. Throws `GrammarError`. */
  grammarState(grammar: Grammar): Promise<unknown>;
}

interface ContextInternals {
  readonly _ctx: NativeContext;
}
interface ModelInternals {
  readonly _model: unknown;
  readonly _llama: { readonly _bindings: { readonly AddonSampler: new (model: unknown) => NativeSampler } };
}

/** The native context. Throws unless the thread pool has a single thread, which preserves the order of batches and samplings. */
export function nativeContext(context: LlamaContext): NativeContext {
  if (process.env.UV_THREADPOOL_SIZE !== '1') throw new Error('the engine process was not started with UV_THREADPOOL_SIZE=1');
  return (context as unknown as ContextInternals)._ctx;
}

export function newSampler(model: LlamaModel, config: SamplerConfig): NativeSampler {
  const { _model, _llama } = model as unknown as ModelInternals;
  const sampler = new _llama._bindings.AddonSampler(_model);
  sampler.applyConfig(config);
  return sampler;
}

export function nativeGrammar(state: LlamaGrammarEvaluationState): unknown {
  return (state as unknown as { readonly _state: unknown })._state;
}

export function nativeTokens(tokens: readonly Token[]): Uint32Array {
  return Uint32Array.from(tokens);
}
