/**
 * `PrefillQueue`: the streams whose prompts are being read. Chooses the next prompt, and the size of its slice for the next batch.
 *
 * Each prompt is due at a count of tokens: the tokens read for all prompts when its stream was admitted, plus the prompt's own uncached
 * tokens. The prompt with the lowest count is next. A short prompt thus overtakes longer ones, but none starves: at most about as many
 * tokens overtake a prompt as it has itself.
 */
import type { TextStream } from '../output/text-stream.js';
import type { MediaChunk } from './media-span.js';
import { PrefillBudget } from './prefill-budget.js';
import type { Repeatability } from './repeatability.js';
import type { CachedSequence } from './sequence-pool.js';
import { SlicePolicy } from './slice-policy.js';

/** A stream with the sequence that its prompt is read into. */
export interface PromptReader {
  readonly stream: { readonly options: Pick<TextStream['options'], 'prompt' | 'repeatable' | 'media'> };
  readonly sequence: Pick<CachedSequence, 'tokens'>;
  /** Value of the queue's `tokensRead` at which the prompt is due. */
  readonly dueAt: number;
}

export interface PrefillQueueOptions {
  readonly repeatability: Repeatability;
  /** Maximum tokens of one batch. */
  readonly batchTokens: number;
  readonly usesGpu: boolean;
}

export class PrefillQueue<Reader extends PromptReader> {
  readonly #options: PrefillQueueOptions;
  #readers: Reader[] = [];
  readonly budget = new PrefillBudget();
  readonly slices: SlicePolicy;
  /** Prompt tokens read for all streams so far. */
  tokensRead = 0;

  constructor(options: PrefillQueueOptions) {
    this.#options = options;
    this.slices = new SlicePolicy(!options.usesGpu);
  }

  get isEmpty(): boolean {
    return this.#readers.length === 0;
  }

  get readers(): readonly Reader[] {
    return this.#readers;
  }

  add(reader: Reader): void {
    this.#readers.push(reader);
  }

  remove(reader: Reader): void {
    this.#readers = this.#readers.filter((each) => each !== reader);
  }

  /**
   * Removes and returns the next reader; undefined if none may read now.
   *
   * @param isShared Whether other streams generate. Repeatable prompts and images then wait while their budget is overdrawn.
   */
  take(isShared: boolean): Reader | undefined {
    const canCut = (reader: Reader): boolean => !reader.stream.options.repeatable && nextImage(reader) === undefined;
    const eligible = isShared && this.budget.isOverdrawn ? this.#readers.filter(canCut) : this.#readers;
    let next: Reader | undefined;
    for (const reader of eligible) if (next === undefined || isBefore(reader, next)) next = reader;
    if (next !== undefined) this.remove(next);
    return next;
  }

  /**
   * Number of tokens in the next slice of a prompt. A slice ends before an image.
   *
   * @param limitMs Time for the slice while other streams generate, in milliseconds. Null if no stream generates.
   */
  sliceTokens({ sequence, stream }: Reader, limitMs: number | null): number {
    const { repeatability, batchTokens } = this.#options;
    const { prompt, repeatable, media } = stream.options;
    const at = sequence.tokens.length;
    const left = (media.find(({ start }) => start > at)?.start ?? prompt.length) - at;
    // Cuts at multiples of `slice`, wherever the cached part of the prompt ends.
    if (repeatable && repeatability.minRows === null) return Math.min(left, repeatability.slice - (at % repeatability.slice));
    const maxTokens = Math.min(left, batchTokens);
    const minTokens = repeatable ? Math.min(repeatability.slice, maxTokens) : 1;
    const wanted = limitMs === null ? batchTokens : this.slices.choose({ context: at, minTokens, maxTokens, limitMs });
    if (!repeatable) return Math.min(left, wanted);
    // Slices of equal size, so that the last one is not below `minTokens`.
    return Math.ceil(left / Math.max(1, Math.ceil(left / batchTokens), Math.floor(left / wanted)));
  }

  /** Whether a slice of `tokens` tokens from index `at` gives bit-exact results on every run. */
  isBitExact(at: number, tokens: number): boolean {
    const { minRows, slice } = this.#options.repeatability;
    return minRows === null ? tokens === slice && at % slice === 0 : tokens >= slice;
  }
}

/** The image part that is next in a prompt; undefined if text is next. */
export function nextImage({ sequence, stream }: PromptReader): MediaChunk | undefined {
  return stream.options.media.find(({ start }) => start === sequence.tokens.length);
}

/** Prompts with the same due count: the one with fewer tokens left is first, so that a prompt that was begun goes on. */
function isBefore(one: PromptReader, other: PromptReader): boolean {
  return one.dueAt < other.dueAt || (one.dueAt === other.dueAt && tokensLeft(one) < tokensLeft(other));
}

function tokensLeft({ stream, sequence }: PromptReader): number {
  return stream.options.prompt.length - sequence.tokens.length;
}
