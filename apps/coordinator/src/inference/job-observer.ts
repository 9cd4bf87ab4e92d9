/** Interfaces through which a job reports its progress to metrics (`JobObserver`) and tracing (`Tracer`). Nothing contains content. */

export type JobEvent =
  /** A first attempt or a retry got a slot or was refused one. `outcome` is the reason of the choice or of the refusal. */
  | { readonly type: 'placed'; readonly outcome: string; readonly waitMs: number }
  /** An attempt failed with a code of the outcome policy. `retried` tells whether another attempt continues the job or may do so. */
  | { readonly type: 'attempt_failed'; readonly reason: string; readonly retried: boolean }
  /** A hedged attempt (started because another one was late) was sent, won, or lost. */
  | { readonly type: 'hedge'; readonly outcome: 'sent' | 'won' | 'lost' }
  /** First content of a stream, `ms` after the request was read and parsed. */
  | { readonly type: 'first_token'; readonly ms: number };

/** Implementations must be fast and must not throw. */
export interface JobObserver {
  event(event: JobEvent): void;
  /** Called when content is written to a client that keeps up, `ms` after the content's first byte arrived from the provider. */
  relayed(ms: number): void;
}

/** Attributes of a span. Never contain an account, a key, a prompt or an answer. */
export type TraceAttributes = Readonly<Record<string, string | number | boolean>>;

export interface TraceSpan {
  child(name: string, attributes?: TraceAttributes): TraceSpan;
  /** `error` is a code of this project. Null or absent means success. */
  end(attributes?: TraceAttributes, error?: string | null): void;
}

export interface Tracer {
  /** Starts the span of a request. `traceparent` is the client's header of W3C Trace Context. */
  start(name: string, attributes: TraceAttributes, traceparent: string | undefined): TraceSpan;
}

export const NO_TRACE: TraceSpan = { child: () => NO_TRACE, end: () => {} };

export const NO_TRACER: Tracer = { start: () => NO_TRACE };
