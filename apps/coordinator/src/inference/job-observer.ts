/** Observers of jobs, for metrics and tracing. Events contain codes, counts and times only, never content. */

export type JobEvent =
  /** A request was placed or refused a slot. `outcome`: reason of the choice or of the refusal. */
  | { readonly type: 'placed'; readonly outcome: string; readonly waitMs: number }
  /** An attempt failed before a byte was sent to the client. `reason`: a code of the outcome policy. */
  | { readonly type: 'attempt_failed'; readonly reason: string; readonly retried: boolean }
  /** A hedged attempt was started, won, or lost. */
  | { readonly type: 'hedge'; readonly outcome: 'sent' | 'won' | 'lost' }
  /** First content of a stream. `ms`: since the request arrived. */
  | { readonly type: 'first_token'; readonly ms: number };

/** Implementations must be fast and must not throw. */
export interface JobObserver {
  event(event: JobEvent): void;
  /** Called for every write to a client. `ms`: since the frame with the content arrived. */
  relayed(ms: number): void;
}

/** Attributes of a span. Never contain an account, a key, a prompt or an answer. */
export type TraceAttributes = Readonly<Record<string, string | number | boolean>>;

export interface TraceSpan {
  /** Starts a child span. */
  child(name: string, attributes?: TraceAttributes): TraceSpan;
  /** `error`: a code of this project; null or undefined for success. */
  end(attributes?: TraceAttributes, error?: string | null): void;
}

export interface Tracer {
  /** Starts the span of a request. `traceparent`: the client's header of W3C Trace Context. */
  start(name: string, attributes: TraceAttributes, traceparent: string | undefined): TraceSpan;
}

export const NO_TRACE: TraceSpan = { child: () => NO_TRACE, end: () => {} };

export const NO_TRACER: Tracer = { start: () => NO_TRACE };
