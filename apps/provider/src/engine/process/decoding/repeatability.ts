/**
 * `findRepeatability` tests in which batches a token's logits are the same bit by bit, so that a request with a seed repeats its text.
 *
 * The compute kernel, and with it the rounding, depends on the size of the batch.
 */
import type { Token } from 'node-llama-cpp';
import { type NativeContext, type NativeSampler, type NativeSamplers, nativeTokens } from '../native.js';
import { MAX_DRAFT } from './draft-policy.js';
import { TILE_ROWS } from './slice-policy.js';

/** Prompt tokens per batch where only slices of fixed size are bit-exact. Small, because other streams wait for a slice. */
const FIXED_SLICE = 128;
/** Slice size with which the second slice begins inside a tile of the whole prompt. */
const UNEVEN_SLICE = TILE_ROWS + 1;
/** Number of largest logits compared, in addition to the sum of all. */
const TOP_LOGITS = 40;
/** Tokens per slice in the test that reads the compared tokens as part of the prompt. */
const CUT_SLICE = 7;
/** Number of compared tokens. Small models (400,000 parameters) show a difference only at every tenth token, larger ones at each. */
const MIN_STEPS = 6;
const MAX_STEPS = 40;
/** Compared batch sizes of a token and its draft: with each remainder after tiles of four rows, and the largest. */
const DRAFT_ROWS = [2, 3, 5, 8, MAX_DRAFT + 1];
/** Prompt tokens before the compared tokens; enough for the largest batch to end with the compared tokens. */
const PROMPT_TOKENS = MAX_DRAFT + 1 - MIN_STEPS;
/** Size of a model, as embedding width times layers, from which on a single token shows a difference. */
const SINGLE_TOKEN_MODEL_SIZE = 16_384;

export interface Repeatability {
  /**
   * Minimum rows of neighbouring sequences in a shared batch for bit-exact tokens (`batchRows`). Prompts are then bit-exact in slices of
   * at least `slice` tokens.
   *
   * If null, a repeatable stream needs batches of its own, and its prompt is cut at multiples of `slice`.
   */
  readonly minRows: 1 | 2 | null;
  /** Prompt tokens of a repeatable stream per batch: the minimum, or the cutting distance if `minRows` is null. */
  readonly slice: number;
  /** Whether a stream's tokens are bit-exact also in batches with drafted tokens. */
  readonly exactDrafts: boolean;
}

export interface RepeatabilityTest {
  readonly context: NativeContext;
  readonly samplers: Pick<NativeSamplers, 'newSampler'>;
  readonly vocabularySize: number;
  /** Embedding width times layers. */
  readonly modelSize: number;
  readonly sequences: number;
  /** Whether to test shared batches. Only one CPU thread can pass: GPU kernels depend on the batch size. */
  readonly mayShare: boolean;
}

/** Decodes test batches. The context must be empty and is left empty. */
export async function findRepeatability(options: RepeatabilityTest): Promise<Repeatability> {
  const ownBatches: Repeatability = { minRows: null, slice: FIXED_SLICE, exactDrafts: false };
  if (!options.mayShare) return ownBatches;
  const test = new BatchTest(options);
  try {
    for (const minRows of [1, 2] as const) {
      if (!(await test.isExactShared(minRows))) continue;
      if (!(await test.isExactInSlices())) return ownBatches;
      return { minRows, slice: TILE_ROWS, exactDrafts: await test.isExactInDrafts() };
    }
    return ownBatches;
  } finally {
    test.end();
  }
}

class BatchTest {
  readonly #sampler: NativeSampler;
  readonly #vocabularySize: number;
  readonly #steps: number;
  /** Logits of the compared tokens, decoded one at a time, by step. */
  #expected: readonly string[] = [];

  constructor(private readonly options: RepeatabilityTest) {
    this.#sampler = options.samplers.newSampler({ temperature: 1, topK: TOP_LOGITS, seed: 1 });
    this.#vocabularySize = options.vocabularySize;
    this.#steps = Math.min(MAX_STEPS, MIN_STEPS + Math.ceil(SINGLE_TOKEN_MODEL_SIZE / options.modelSize));
  }

  /** Whether tokens after a prompt have equal logits alone in `minRows` rows, among other streams, and after a differently cut prompt. */
  async isExactShared(minRows: 1 | 2): Promise<boolean> {
    const { sequences } = this.options;
    this.#clear();
    const expected: string[] = [];
    await this.#readPrompt(PROMPT_TOKENS, PROMPT_TOKENS);
    for (let step = 0; step < this.#steps; step++) expected.push(await this.#decodeNext(PROMPT_TOKENS + step, minRows, 1));
    this.#expected = expected;
    for (const streams of new Set([2, 3, sequences])) {
      if (streams < 2 || streams > sequences) continue;
      this.#clear();
      await this.#readPrompt(PROMPT_TOKENS, PROMPT_TOKENS);
      for (const [step, logits] of expected.entries())
        if ((await this.#decodeNext(PROMPT_TOKENS + step, 1, streams)) !== logits) return false;
    }
    this.#clear();
    const last = PROMPT_TOKENS + this.#steps - 1;
    const cutLength = last - (last % CUT_SLICE);
    await this.#readPrompt(cutLength, CUT_SLICE);
    return (await this.#decodeNext(cutLength, minRows, 1)) === expected[cutLength - PROMPT_TOKENS];
  }

  /** Whether the last tokens of a prompt have equal logits if the prompt is read at once and in two slices. */
  async isExactInSlices(): Promise<boolean> {
    const whole = await this.#lastRows([2 * UNEVEN_SLICE]);
    return (await this.#lastRows([UNEVEN_SLICE, UNEVEN_SLICE])) === whole;
  }

  /** Whether the tokens of the last {@link isExactShared} have equal logits in one batch, as with a draft. */
  async isExactInDrafts(): Promise<boolean> {
    for (const rows of DRAFT_ROWS) {
      // The compared tokens as the first and as the last rows: kernels compute full tiles and the remaining rows differently.
      for (const start of new Set([PROMPT_TOKENS, Math.min(PROMPT_TOKENS, PROMPT_TOKENS + this.#steps - rows)])) {
        if (!(await this.#isExactInBatch(start, rows))) return false;
      }
    }
    return true;
  }

  /** Whether a batch of `rows` tokens from position `start` gives the expected logits for the compared tokens in it. */
  async #isExactInBatch(start: number, rows: number): Promise<boolean> {
    const { context } = this.options;
    this.#clear();
    await this.#readPrompt(start, start);
    const tokens = Array.from({ length: rows }, (_, index) => this.#token(start + index));
    context.initBatch(rows);
    const batchIndices = context.addToBatch(0, start, nativeTokens(tokens), Uint32Array.from(tokens.keys()));
    await context.decodeBatch();
    for (const [index, batchIndex] of batchIndices.entries()) {
      const expected = this.#expected[start + index - PROMPT_TOKENS];
      if (expected !== undefined && (await this.#logits(batchIndex)) !== expected) return false;
    }
    return true;
  }

  end(): void {
    this.#clear();
    this.#sampler.dispose();
  }

  /** Logits of the last rows of a prompt that is read in slices of the given lengths. */
  async #lastRows(slices: readonly number[]): Promise<string> {
    const { context } = this.options;
    this.#clear();
    let at = 0;
    let batchIndices: Uint32Array = new Uint32Array(0);
    for (const slice of slices) {
      const tokens = nativeTokens(Array.from({ length: slice }, (_, index) => this.#token(at + index)));
      context.initBatch(slice);
      batchIndices = context.addToBatch(
        0,
        at,
        tokens,
        Uint32Array.from({ length: this.#steps }, (_, row) => slice - this.#steps + row),
      );
      await context.decodeBatch();
      at += slice;
    }
    const rows: string[] = [];
    for (const batchIndex of batchIndices) rows.push(await this.#logits(batchIndex));
    return rows.join('\n');
  }

  #clear(): void {
    for (let sequence = 0; sequence < this.options.sequences; sequence++) this.options.context.disposeSequence(sequence);
  }

  async #readPrompt(length: number, slice: number): Promise<void> {
    const { context } = this.options;
    for (let at = 0; at < length; at += slice) {
      const tokens = Array.from({ length: Math.min(slice, length - at) }, (_, index) => this.#token(at + index));
      context.initBatch(tokens.length);
      context.addToBatch(0, at, nativeTokens(tokens), new Uint32Array(0));
      await context.decodeBatch();
    }
  }

  /** Logits of one more token, in a batch of `streams` streams with `rows` rows of this one. Removes the copies. */
  async #decodeNext(position: number, rows: number, streams: number): Promise<string> {
    const { context } = this.options;
    const own = nativeTokens(Array.from({ length: rows }, () => this.#token(position)));
    context.initBatch(rows + streams - 1);
    const [batchIndex = 0] = context.addToBatch(0, position, own, Uint32Array.from(own.keys()));
    for (let other = 1; other < streams; other++) {
      context.addToBatch(other, position - PROMPT_TOKENS, nativeTokens([this.#token(position + other)]), Uint32Array.of(0));
    }
    await context.decodeBatch();
    const logits = await this.#logits(batchIndex);
    context.removeTokenCellsFromSequence(0, position + 1, -1);
    return logits;
  }

  /** The largest logits and the `weight` of all, as text. */
  async #logits(batchIndex: number): Promise<string> {
    const sampled = await this.options.context.sampleToken(
      batchIndex,
      this.#sampler,
      false,
      false,
      [[], false, false, false, TOP_LOGITS],
      true,
    );
    return `${sampled[3]?.join()} ${sampled[4]}`;
  }

  /** Test token for an index, the same in every test. */
  #token(index: number): Token {
    return ((index * 7919 + 13) % this.#vocabularySize) as Token;
  }
}

/**
 * Rows per stream in a batch: one, or `min` for a stream without a neighbouring id, because llama.cpp computes only neighbouring ids
 * together.
 *
 * @param ids Sequence ids, ascending.
 */
export function batchRows(ids: readonly number[], min: 1 | 2): number[] {
  return ids.map((id, index) => (ids[index - 1] === id - 1 || ids[index + 1] === id + 1 ? 1 : min));
}
