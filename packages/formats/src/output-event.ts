/** `OutputEvent`: the provider's output in order of generation, independent of the public format. Renderers consume it. */
import type { FinishReason, Usage } from '@inference/protocol';

export interface Logprob {
  readonly token: string;
  /** Natural logarithm of the probability. Finite, because JSON has no infinity: -9999 for impossible tokens. */
  readonly logprob: number;
  /** UTF-8 bytes of the token, possibly a part of a character; null if the token has no text. */
  readonly bytes: readonly number[] | null;
}

/** Log probabilities at one position of the output. */
export interface TokenLogprob extends Logprob {
  /** Alternatives at this position, most probable first. */
  readonly top_logprobs: readonly Logprob[];
}

export type OutputEvent =
  /** End of prefill. If present, the first event. The Messages format requires the event. */
  | { readonly type: 'start'; readonly promptTokens: number; readonly cachedTokens?: number }
  /** Visible text. */
  | { readonly type: 'text'; readonly text: string; readonly logprobs?: readonly TokenLogprob[] }
  /** Text of a think segment, without its tags. */
  | { readonly type: 'reasoning'; readonly text: string }
  /** Start of a tool call. `index`: number of the call in the response, from 0. */
  | { readonly type: 'tool_call_start'; readonly index: number; readonly id: string; readonly name: string }
  /** More JSON text of the arguments of the latest call. */
  | { readonly type: 'tool_call_arguments'; readonly index: number; readonly delta: string }
  /** End of one of several choices. The events of the next choice follow, or the finish event. */
  | { readonly type: 'choice_finish'; readonly reason: CompletedFinishReason; readonly stopSequence?: string }
  /** Keep-alive after a time without output. Only some formats have such an event. */
  | { readonly type: 'ping' }
  /** The last event. */
  | FinishEvent;

export type CompletedFinishReason = Exclude<FinishReason, 'cancelled'>;

export interface FinishEvent {
  readonly type: 'finish';
  readonly reason: CompletedFinishReason;
  /** The stop sequence that ended the output, if any. */
  readonly stopSequence?: string;
  readonly usage: Usage;
  /** Tokens in think segments; `usage` includes them. */
  readonly hiddenTokens: number;
  /** Seconds since 1970. */
  readonly completedAt?: number;
}
