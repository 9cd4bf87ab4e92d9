/**
 * Finds out whether this model on this machine computes a token the same way, to the last bit, whatever else is in the
 * batch. Some kernels take other paths for one row than for several; then streams that have to be repeatable cannot share
 * batches. Asked once after loading, of the numbers themselves.
 */
import type { LlamaModel, Token } from 'node-llama-cpp';
import { type NativeContext, type NativeSampler, nativeTokens, newSampler } from './native.js';

/** Prompt tokens of a repeatable stream in one batch, on a processor and elsewhere. Below 64 rows processors compute them one by one. */
const PROCESSOR_SLICE = 32;
const SLICE = 64;
/** Logits that are compared, beside the sum over all. */
const TOP = 40;
/** Tokens of the prompt that is asked about; how attention reads more of them does not depend on the model, and tests see to it. */
const PROMPT = 8;

export interface Repeatability {
  /**
   * A row is the same in any batch of at least so many rows (1 or 2), and in any cut of a prompt into slices. Null: only in
   * the same cut, and alone.
   */
  readonly leastRows: number | null;
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
    for (const leastRows of [1, 2]) if (await probe.holds(leastRows)) return { leastRows, slice: PROCESSOR_SLICE };
    return { leastRows: null, slice: PROCESSOR_SLICE };
  } finally {
    probe.end();
  }
}

class Probe {
  readonly #sampler: NativeSampler;
  readonly #vocabulary: number;

  constructor(private readonly asked: Asked) {
    this.#sampler = newSampler(asked.model, { temperature: 1, topK: TOP, seed: 1 });
    this.#vocabulary = asked.model.fileInfo.metadata.tokenizer.ggml.tokens.length;
  }

  /** The token after a prompt: with as few rows as may be, among others, and after another cut of the prompt. */
  async holds(leastRows: number): Promise<boolean> {
    const { context, sequences } = this.asked;
    this.#clear();
    await this.#prompt(PROMPT);
    const alone = await this.#next(PROMPT, leastRows, 1);
    for (const rows of new Set([2, 3, sequences])) {
      if (rows > sequences || rows < leastRows) continue;
      context.removeTokenCellsFromSequence(0, PROMPT, -1);
      for (let other = 1; other < rows; other++) context.disposeSequence(other);
      if ((await this.#next(PROMPT, 1, rows)) !== alone) return false;
    }
    this.#clear();
    await this.#prompt(2);
    return (await this.#next(PROMPT, leastRows, 1)) === alone;
  }

  end(): void {
    this.#clear();
    this.#sampler.dispose();
  }

  #clear(): void {
    for (let sequence = 0; sequence < this.asked.sequences; sequence++) this.asked.context.disposeSequence(sequence);
  }

  async #prompt(slice: number): Promise<void> {
    const { context } = this.asked;
    for (let at = 0; at < PROMPT; at += slice) {
      const tokens = Array.from({ length: slice }, (_, index) => this.#token(at + index));
      context.initBatch(slice);
      context.addToBatch(0, at, nativeTokens(tokens), new Uint32Array(0));
      await context.decodeBatch();
    }
  }

  /** What the logits after one more token are, in a batch with `sequences - 1` others and at least `rows` rows. */
  async #next(position: number, rows: number, sequences: number): Promise<string> {
    const { context } = this.asked;
    const own = nativeTokens(Array.from({ length: rows }, () => this.#token(position)));
    context.initBatch(rows + sequences - 1);
    const [place = 0] = context.addToBatch(0, position, own, Uint32Array.of(0));
    for (let other = 1; other < sequences; other++) {
      context.addToBatch(other, 0, nativeTokens([this.#token(other)]), new Uint32Array(0));
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
