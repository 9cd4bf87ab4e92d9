/**
 * The native side of node-llama-cpp, below its sequences: fill a batch, decode it, sample from it. Its own scheduler takes
 * two trips to another thread and some ten promises per token and stream; this takes one trip per batch. The library is
 * pinned, and this file is the only one that reaches into it.
 */
import type { LlamaContext, LlamaGrammarEvaluationState, LlamaModel, Token } from 'node-llama-cpp';

/** Flat pairs of token and value. */
export type Pairs = readonly number[];
/** Token, probabilities, confidence, logits, sum of the exponentials of all logits less the greatest. */
export type Sampled = readonly [token: number, probabilities?: Pairs, confidence?: number, logits?: Pairs, weight?: number];

/** Samples for one stream and remembers what it drew. Members are those of the library's own `applyConfig`. */
export interface NativeSampler {
  applyConfig(config: SamplerConfig): void;
  dispose(): void;
}

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

/** One llama.cpp context. Between `initBatch` and the end of `decodeBatch` nothing else may be asked of it but to sample. */
export interface NativeContext {
  /** Begins a batch of at most so many tokens. */
  initBatch(tokens: number): void;
  /** Adds tokens of a sequence at a position. Returns the places at which those listed in `withLogits` can be sampled. */
  addToBatch(sequence: number, position: number, tokens: Uint32Array, withLogits: Uint32Array): Uint32Array;
  decodeBatch(): Promise<void>;
  /** -1: nothing could be sampled. */
  sampleToken(place: number, sampler: NativeSampler): Promise<number>;
  sampleToken(
    place: number,
    sampler: NativeSampler,
    probabilities: boolean,
    confidence: boolean,
    logits: readonly [filter: readonly number[], max: boolean, min: boolean, selected: boolean, top: number],
    weight: boolean,
  ): Promise<Sampled>;
  /** Forgets all of a sequence. */
  disposeSequence(sequence: number): void;
  /** Forgets positions from `start` up to `end` (-1: the last). False: this kind of memory cannot, and the rest is not to be used. */
  removeTokenCellsFromSequence(sequence: number, start: number, end: number): boolean;
  /** Lowest position that is still held; models with a sliding window forget the oldest. */
  getSequenceKvCacheMinPosition(sequence: number): number;
}

interface ContextInternals {
  readonly _ctx: NativeContext;
}
interface ModelInternals {
  readonly _model: unknown;
  readonly _llama: { readonly _bindings: { readonly AddonSampler: new (model: unknown) => NativeSampler } };
}

/**
 * Throws when the thread pool of this process has more than one thread. Batches and the samplings from them are queued
 * together, and it is the single thread that keeps them in order: with two, a stream could sample from another's logits.
 */
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

/** What `applyConfig` takes as `grammarEvaluationState`. */
export function nativeGrammar(state: LlamaGrammarEvaluationState): unknown {
  return (state as unknown as { readonly _state: unknown })._state;
}

/** Tokens as the addon takes them. */
export function nativeTokens(tokens: readonly Token[]): Uint32Array {
  return Uint32Array.from(tokens);
}
