/**
 * `findRepeatability` tests in which batches a model's logits are bit-exact, so that a request with a seed repeats its text.
 *
 * Compute kernels depend on the batch size and round differently.
 */
import type { Token } from 'node-llama-cpp';
import { type NativeContext, type NativeSampler, type NativeSamplers, nativeTokens } from '../native.js';
import { MAX_DRAFT } from './draft-policy.js';
import { TILE_ROWS } from './slice-policy.js';

/** Prompt tokens per batch if only fixed slices are bit-exact. Small, because other streams wait for a slice. */
const FIXED_SLICE = 128;
/** Slice size at which the second slice does not begin at a tile boundary of the whole prompt. */
const UNEVEN_SLICE = TILE_ROWS + 1;
/** Number of largest logits compared, in addition to the sum of all. */
const TOP_LOGITS = 40;
/** Tokens per slice in the test that reads the compared tokens as part of the prompt. */
const CUT_SLICE = 7;
/** Number of compared tokens. Small models (400,000 parameters) differ only at every tenth token, larger ones at each. */
const MIN_STEPS = 6;
const MAX_STEPS = 40;
/** Compared batch sizes of a token and its draft: tiles of rows with each remainder, and the largest. */
const DRAFT_ROWS = [2, 3, 5, 8, MAX_DRAFT + 1];
/** Prompt tokens before the compared tokens; enough for the largest batch to end with the compared tokens. */
const PROMPT_TOKENS = MAX_DRAFT + 1 - MIN_STEPS;
/** Size of a model, as embedding width times layers, from which on a single token shows a difference. */
const SINGLE_TOKEN_MODEL_SIZE = 16_384;

export interface Repeatability {
  /**
   * Minimum rows of a shared batch with bit-exact tokens. Prompts are then bit-exact in slices of at least `slice` tokens.
   *
   * If null, a bit-exact stream needs batches of its own, and its prompt is cut at multiples of `slice`.
   */
  readonly minRows: 1 | 2 | null;
  /** Prompt tokens of a repeatable stream per batch: the minimum, or the exact number if `minRows` is null. */
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
  /** Whether shared batches can be bit-exact: only on one CPU thread. GPU kernels depend on the batch size. */
  readonly mayShare: boolean;
}

/** Decodes test batches in an empty context, and leaves the context empty. */
export async function findRepeatability(options: RepeatabilityTest): Promise<Repeatability> {
  const separate: Repeatability = { minRows: null, slice: FIXED_SLICE, exactDrafts: false };
  if (!options.mayShare) return separate;
  const test = new BatchTest(options);
  try {
    for (const minRows of [1, 2] as const) {
      if (!(await test.isExactShared(minRows))) continue;
      if (!(await test.isExactInSlices())) return separate;
      return { minRows, slice: TILE_ROWS, exactDrafts: await test.isExactInDrafts() };
    }
    return separate;
  } finally {
    test.end();
  }
}

class BatchTest {
  readonly #sampler: NativeSampler;
  readonly #vocabulary: number;
  readonly #steps: number;
  /** Logits of the compared tokens, decoded one at a time. */
  #alone: readonly string[] = [];

  constructor(private readonly options: RepeatabilityTest) {
    this.#sampler = options.samplers.newSampler({ temperature: 1, topK: TOP_LOGITS, seed: 1 });
    this.#vocabulary = options.vocabularySize;
    this.#steps = Math.min(MAX_STEPS, MIN_STEPS + Math.ceil(SINGLE_TOKEN_MODEL_SIZE / options.modelSize));
  }

  /** Compares tokens after a prompt: with the fewest rows, among other streams, and as part of the prompt. */
  async isExactShared(minRows: 1 | 2): Promise<boolean> {
    const { sequences } = this.options;
    this.#clear();
    const alone: string[] = [];
    await this.#prompt(PROMPT_TOKENS, PROMPT_TOKENS);
    for (let step = 0; step < this.#steps; step++) alone.push(await this.#next(PROMPT_TOKENS + step, minRows, 1));
    this.#alone = alone;
    for (const streams of new Set([2, 3, sequences])) {
      if (streams < 2 || streams > sequences) continue;
      this.#clear();
      await this.#prompt(PROMPT_TOKENS, PROMPT_TOKENS);
      for (const [step, expected] of alone.entries()) if ((await this.#next(PROMPT_TOKENS + step, 1, streams)) !== expected) return false;
    }
    this.#clear();
    const last = PROMPT_TOKENS + this.#steps - 1;
    const cutLength = last - (last % CUT_SLICE);
    await this.#prompt(cutLength, CUT_SLICE);
    return (await this.#next(cutLength, minRows, 1)) === alone[cutLength - PROMPT_TOKENS];
  }

  /** Compares the last tokens of a prompt read at once and in two slices. */
  async isExactInSlices(): Promise<boolean> {
    const whole = await this.#lastRows([2 * UNEVEN_SLICE]);
    return (await this.#lastRows([UNEVEN_SLICE, UNEVEN_SLICE])) === whole;
  }

  /** Compares the tokens of a successful {@link isExactShared} with the same tokens in one batch, as with a draft. */
  async isExactInDrafts(): Promise<boolean> {
    for (const rows of DRAFT_ROWS) {
      // Both the first and the last rows: kernels compute full tiles and the remaining rows differently.
      for (const start of new Set([PROMPT_TOKENS, Math.min(PROMPT_TOKENS, PROMPT_TOKENS + this.#steps - rows)])) {
        if (!(await this.#isExactInBatch(start, rows))) return false;
      }
    }
    return true;
  }

  /** Compares the tokens that were also decoded alone, in a batch from position `start`. */
  async #isExactInBatch(start: number, rows: number): Promise<boolean> {
    const { context } = this.options;
    this.#clear();
    await this.#prompt(start, start);
    const tokens = Array.from({ length: rows }, (_, index) => this.#token(start + index));
    context.initBatch(rows);
    const batchIndices = context.addToBatch(0, start, nativeTokens(tokens), Uint32Array.from(tokens.keys()));
    await context.decodeBatch();
    for (const [index, batchIndex] of batchIndices.entries()) {
      const expected = this.#alone[start + index - PROMPT_TOKENS];
      if (expected !== undefined && (await this.#logits(batchIndex)) !== expected) return false;
    }
    return true;
  }

  end(): void {
    this.#clear();
    this.#sampler.dispose();
  }

  /** Logits of the last rows of a prompt that is read in slices of these lengths. */
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

  async #prompt(length: number, slice: number): Promise<void> {
    const { context } = this.options;
    for (let at = 0; at < length; at += slice) {
      const tokens = Array.from({ length: Math.min(slice, length - at) }, (_, index) => this.#token(at + index));
      context.initBatch(tokens.length);
      context.addToBatch(0, at, nativeTokens(tokens), new Uint32Array(0));
      await context.decodeBatch();
    }
  }

  /** Logits after one more token, in a batch of `streams` streams, with `rows` rows of this stream. */
  async #next(position: number, rows: number, streams: number): Promise<string> {
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

  /** The largest logits, and the sum of all (`weight`), as text. */
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

  /** Varied test tokens, the same in each test. */
  #token(index: number): Token {
    return ((index * 7919 + 13) % this.#vocabulary) as Token;
  }
}

/**
 * Rows per stream in a batch. A stream without a neighbouring id gets copies up to `min`, because llama.cpp decodes only
 * neighbouring ids together.
 *
 * @param ids Sequence ids, ascending.
 */
export function batchRows(ids: readonly number[], min: 1 | 2): number[] {
  return ids.map((id, index) => (ids[index - 1] === id - 1 || ids[index + 1] === id + 1 ? 1 : min));
}
