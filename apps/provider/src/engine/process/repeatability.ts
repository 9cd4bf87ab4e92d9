/**
 * Finds out whether this model on this machine computes a token the same way, to the last bit, whatever else is in the
 * batch. Some kernels take other paths for one row than for several; then streams that have to be repeatable cannot share
 * batches. Asked once after loading, of the numbers themselves.
 */
import type { LlamaModel, Token } from 'node-llama-cpp';
import { type NativeContext, type NativeSampler, nativeTokens, newSampler } from './native.js';

/** Most prompt tokens of a repeatable stream in one batch, on a processor and elsewhere. From 64 rows on processors take attention in tiles. */
const PROCESSOR_SLICE = 63;
const SLICE = 64;
/** Logits that are compared, beside the sum over all. */
const TOP = 40;
/** Tokens that are read before those that are asked about. */
const PROMPT = 8;
/** Tokens of a slice where those that are asked about are part of the prompt. */
const CUT = 7;
/**
 * Tokens that are asked about. Activations are rounded to half precision on their way, which hides most differences in the last
 * bits: in a model of 400,000 parameters they come out at one token of ten, in larger ones at each.
 */
const LEAST_STEPS = 6;
const MOST_STEPS = 40;
/** Width of the embedding times layers, at which one token shows a difference. */
const TELLING_SIZE = 16_384;

export interface Repeatability {
  /**
   * A row is the same in any computation of at least so many rows, and in any cut of a prompt into slices. Null: only in
   * the same cut, and alone.
   */
  readonly leastRows: 1 | 2 | null;
  /** Prompt tokens of a repeatable stream that are decoded at once. */
  readonly slice: number;
}

export interface Asked {
  readonly context: NativeContext;
  readonly model: LlamaModel;
  readonly sequences: number;
  /** The model runs on the processor, on one thread. Kernels of GPUs choose their path by the size of the batch. */
  readonly mayShare: boolean;
}

/** Leaves the context empty. */
export async function findRepeatability(asked: Asked): Promise<Repeatability> {
  if (!asked.mayShare) return { leastRows: null, slice: SLICE };
  const probe = new Probe(asked);
  try {
    for (const leastRows of [1, 2] as const) if (await probe.holds(leastRows)) return { leastRows, slice: PROCESSOR_SLICE };
    return { leastRows: null, slice: PROCESSOR_SLICE };
  } finally {
    probe.end();
  }
}

class Probe {
  readonly #sampler: NativeSampler;
  readonly #vocabulary: number;
  readonly #steps: number;

  constructor(private readonly asked: Asked) {
    this.#sampler = newSampler(asked.model, { temperature: 1, topK: TOP, seed: 1 });
    this.#vocabulary = asked.model.fileInfo.metadata.tokenizer.ggml.tokens.length;
    const size = asked.model.embeddingVectorSize * asked.model.fileInsights.totalLayers;
    this.#steps = Math.min(MOST_STEPS, LEAST_STEPS + Math.ceil(TELLING_SIZE / size));
  }

  /** The tokens after a prompt: with as few rows as may be, among others, and when they are part of the prompt. */
  async holds(leastRows: 1 | 2): Promise<boolean> {
    const { sequences } = this.asked;
    this.#clear();
    const alone: string[] = [];
    await this.#prompt(PROMPT, PROMPT);
    for (let step = 0; step < this.#steps; step++) alone.push(await this.#next(PROMPT + step, leastRows, 1));
    for (const streams of new Set([2, 3, sequences])) {
      if (streams < 2 || streams > sequences) continue;
      this.#clear();
      await this.#prompt(PROMPT, PROMPT);
      for (const [step, expected] of alone.entries()) if ((await this.#next(PROMPT + step, 1, streams)) !== expected) return false;
    }
    this.#clear();
    const last = PROMPT + this.#steps - 1;
    const asked = last - (last % CUT);
    await this.#prompt(asked, CUT);
    return (await this.#next(asked, leastRows, 1)) === alone[asked - PROMPT];
  }

  end(): void {
    this.#clear();
    this.#sampler.dispose();
  }

  #clear(): void {
    for (let sequence = 0; sequence < this.asked.sequences; sequence++) this.asked.context.disposeSequence(sequence);
  }

  async #prompt(length: number, slice: number): Promise<void> {
    const { context } = this.asked;
    for (let at = 0; at < length; at += slice) {
      const tokens = Array.from({ length: Math.min(slice, length - at) }, (_, index) => this.#token(at + index));
      context.initBatch(tokens.length);
      context.addToBatch(0, at, nativeTokens(tokens), new Uint32Array(0));
      await context.decodeBatch();
    }
  }

  /** What the logits after one more token are, in a batch of `streams` streams of which this one has `rows` rows. It stays. */
  async #next(position: number, rows: number, streams: number): Promise<string> {
    const { context } = this.asked;
    const own = nativeTokens(Array.from({ length: rows }, () => this.#token(position)));
    context.initBatch(rows + streams - 1);
    const [place = 0] = context.addToBatch(0, position, own, Uint32Array.from(own.keys()));
    for (let other = 1; other < streams; other++) {
      context.addToBatch(other, position - PROMPT, nativeTokens([this.#token(position + other)]), Uint32Array.of(0));
    }
    await context.decodeBatch();
    const sampled = await context.sampleToken(place, this.#sampler, false, false, [[], false, false, false, TOP], true);
    context.removeTokenCellsFromSequence(0, position + 1, -1);
    return `${sampled[3]?.join()} ${sampled[4]}`;
  }

  #token(index: number): Token {
    return ((index * 7919 + 13) % this.#vocabulary) as Token;
  }
}
