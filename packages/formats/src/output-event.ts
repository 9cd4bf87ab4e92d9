/** What an engine's output becomes, in the order in which it was generated, before any format writes it down. */
import type { FinishReason, Usage } from '@inference/protocol';

export interface Logprob {
  readonly token: string;
  /** Natural logarithm of the probability; finite, so that JSON can hold it (-9999 for impossible tokens). */
  readonly logprob: number;
  /** UTF-8 bytes of the token, which need not be whole characters; null where it has no text. */
  readonly bytes: readonly number[] | null;
}

/** A token of the output, in the shape in which the public formats show it. */
export interface TokenLogprob extends Logprob {
  /** The most likely tokens at this place, most likely first. */
  readonly top_logprobs: readonly Logprob[];
}

export type OutputEvent =
  /** The prompt was read. First, once, where it comes at all; the Messages format needs it. */
  | { readonly type: 'start'; readonly promptTokens: number; readonly cachedTokens?: number }
  /** Visible text. One event per generated piece, so that a stream shows the true pace. */
  | { readonly type: 'text'; readonly text: string; readonly logprobs?: readonly TokenLogprob[] }
  /** Text of a think section, without its tags. */
  | { readonly type: 'reasoning'; readonly text: string }
  /** The model calls a tool. `index` counts the calls of an answer from 0. */
  | { readonly type: 'tool_call_start'; readonly index: number; readonly id: string; readonly name: string }
  /** More of the JSON text of the arguments of the call that was started last. */
  | { readonly type: 'tool_call_arguments'; readonly index: number; readonly delta: string }
  /** Nothing was generated for a while. Streams that have a sign of life in their format show it. */
  | { readonly type: 'ping' }
  /** The last event, once. */
  | FinishEvent;

/** How an answer ends that is written to its end. One that was cancelled has no ending. */
export type AnswerEnding = Exclude<FinishReason, 'cancelled'>;

export interface FinishEvent {
  readonly type: 'finish';
  readonly reason: AnswerEnding;
  /** The stop sequence that ended the output, where one did. */
  readonly stopSequence?: string;
  readonly usage: Usage;
  /** Tokens of think sections, which are counted in `usage` as well. */
  readonly hiddenTokens: number;
  /** Seconds since 1970. */
  readonly completedAt?: number;
}
