/**
 * `MediaSpan`: a part of an image in a prompt, as a run of placeholder tokens.
 *
 * In models with multi-dimensional positions (M-RoPE of Qwen-VL), it takes fewer positions than tokens.
 */

export interface MediaSpan {
  /** Index of the first placeholder among the prompt's tokens. */
  readonly start: number;
  readonly tokens: number;
  readonly positions: number;
}

export interface MediaChunk extends MediaSpan {
  /** Encodes this part and decodes the result into a sequence, from `position`. Throws if the model fails. */
  read(sequence: number, position: number): Promise<void>;
}

/** Position after the first `length` tokens of a prompt; `length` must not cut a span. */
export function positionAt(spans: readonly MediaSpan[], length: number): number {
  return spans.reduce((position, span) => (span.start < length ? position - span.tokens + span.positions : position), length);
}

/** `length`, or the start of the span that a prefix of `length` tokens would cut. */
export function uncutLength(spans: readonly MediaSpan[], length: number): number {
  return spans.find(({ start, tokens }) => start < length && length < start + tokens)?.start ?? length;
}
