/** Engine output in order of generation, independent of the public format. */
import type { FinishReason, Usage } from '@inference/protocol';

export interface Logprob {
  readonly token: string;
  /** Natural logarithm of the probability; finite for JSON (-9999 for impossible tokens). */
  readonly logprob: number;
  /** UTF-8 bytes of the token, possibly a partial character; null without text. */
  readonly bytes: readonly number[] | null;
}

/** An output token in the shape of the public formats. */
export interface TokenLogprob extends Logprob {
  /** Alternatives at this position, most probable first. */
  readonly top_logprobs: readonly Logprob[];
}

export type OutputEvent =
  /** End of prefill. First event, at most once; required by the Messages format. */
  | { readonly type: 'start'; readonly promptTokens: number; readonly cachedTokens?: number }
  /** Visible text. One event per generated piece, so that a stream shows the real speed. */
  | { readonly type: 'text'; readonly text: string; readonly logprobs?: readonly TokenLogprob[] }
  /** Text of a think section, without its tags. */
  | { readonly type: 'reasoning'; readonly text: string }
  /** The model calls a tool. `index` counts the calls of an answer from 0. */
  | { readonly type: 'tool_call_start'; readonly index: number; readonly id: string; readonly name: string }
  /** Further JSON text of the arguments of the call that was started last. */
  | { readonly type: 'tool_call_arguments'; readonly index: number; readonly delta: string }
  /** End of one of several choices. Events of the next choice follow, or the finish event. */
  | { readonly type: 'choice_finish'; readonly reason: CompletedFinishReason; readonly stopSequence?: string }
  /** Nothing was generated for some time. Rendered in formats with a keep-alive event. */
  | { readonly type: 'ping' }
  /** The last event, once. */
  | FinishEvent;

/** Finish reasons of a complete response. */
export type CompletedFinishReason = Exclude<FinishReason, 'cancelled'>;

export interface FinishEvent {
  readonly type: 'finish';
  readonly reason: CompletedFinishReason;
  /** The stop sequence that ended the output, if any. */
  readonly stopSequence?: string;
  readonly usage: Usage;
  /** Tokens in think segments, included in `usage`. */
  readonly hiddenTokens: number;
  /** Seconds since 1970. */
  readonly completedAt?: number;
}
