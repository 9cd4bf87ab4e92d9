/** `PromptSlices`: how many prompt tokens a batch reads, so that running streams wait only shortly. */
import type { Repeatability } from './repeatability.js';

/** Prompt time per round while streams are running, in milliseconds; the current slice may exceed the limit. */
export const PROMPT_MS = 30;
/** Smallest prompt slice worth a batch, in tokens. */
const MIN_SLICE = 16;

interface SliceRequest {
  /** Tokens of the prompt that are decoded. */
  readonly at: number;
  /** Tokens up to the next image or the prompt's end. */
  readonly left: number;
  readonly repeatable: boolean;
  /** Other streams are running. */
  readonly busy: boolean;
}

export class PromptSlices {
  /** Measured prompt time per token; decides the slice size. */
  #msPerToken = 0;
  /** Debt of repeatable prompts and images in milliseconds: time of their slices while streams ran, less `PROMPT_MS` per round. */
  #overdrawnMs = 0;

  /** `batchTokens`: maximum tokens of one batch. */
  constructor(
    private readonly repeatability: Repeatability,
    private readonly batchTokens: number,
  ) {}

  /** Whether repeatable prompts and images have overdrawn their time, so that only text of other prompts is read. */
  get isOverdrawn(): boolean {
    return this.#overdrawnMs >= PROMPT_MS;
  }

  /** Number of tokens in the next slice. */
  tokens({ at, left, repeatable, busy }: SliceRequest): number {
    const { minRows, slice } = this.repeatability;
    // Cuts at multiples of `slice`, regardless of the cached part of the prompt.
    if (repeatable && minRows === null) return Math.min(left, slice - (at % slice));
    const min = repeatable ? slice : MIN_SLICE;
    const fitting = this.#msPerToken === 0 ? min : Math.floor(PROMPT_MS / this.#msPerToken);
    const wanted = busy ? Math.max(min, Math.min(this.batchTokens, fitting)) : this.batchTokens;
    if (!repeatable) return Math.min(left, wanted);
    // Equal slices, so the last slice is not too small.
    return Math.ceil(left / Math.max(1, Math.ceil(left / this.batchTokens), Math.floor(left / wanted)));
  }

  /** Whether a slice decoded alone is bit-exact on every run. */
  isBitExact(at: number, tokens: number): boolean {
    const { minRows, slice } = this.repeatability;
    return minRows === null ? tokens === slice && at % slice === 0 : tokens >= slice;
  }

  /** A slice took this time, in milliseconds. */
  addSlice(tokens: number, ms: number): void {
    if (tokens >= MIN_SLICE) this.#msPerToken = ms / tokens;
  }

  /** Running streams waited for a repeatable prompt or an image, in milliseconds. */
  overdraw(ms: number): void {
    this.#overdrawnMs += ms;
  }

  /** Each running stream has decoded a token. */
  endRound(): void {
    this.#overdrawnMs = Math.max(0, this.#overdrawnMs - PROMPT_MS);
  }

  /** No stream is running. */
  clearDebt(): void {
    this.#overdrawnMs = 0;
  }
}
