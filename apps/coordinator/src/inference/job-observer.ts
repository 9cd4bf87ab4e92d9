/** Observers of jobs: metrics count events, and a tracer follows single jobs. Codes, counts and times only. */

export type JobEvent =
  /** A request got a slot or none. `outcome`: reason of the choice or of the refusal. */
  | { readonly type: 'placed'; readonly outcome: string; readonly waitMs: number }
  /** An attempt failed before anything was committed. `reason`: a code of the outcome policy. */
  | { readonly type: 'attempt_failed'; readonly reason: string; readonly retried: boolean }
  /** A second attempt beside a late first one: started, won, or cancelled. */
  | { readonly type: 'hedge'; readonly outcome: 'sent' | 'won' | 'lost' }
  /** First content of a stream, in milliseconds since the request arrived. */
  | { readonly type: 'first_token'; readonly ms: number };

/** Listeners must be quick and must not throw. */
export interface JobObserver {
  event(event: JobEvent): void;
  /** Content was written to a client, `ms` after its frame arrived. Called for every write. */
  relayed(ms: number): void;
}

/** Attributes of a span. Never an account, a key, a prompt or an answer. */
export type TraceAttributes = Readonly<Record<string, string | number | boolean>>;

export interface TraceSpan {
  /** Starts a child span. */
  child(name: string, attributes?: TraceAttributes): TraceSpan;
  /** `error`: a code of ours; null or undefined: success. */
  end(attributes?: TraceAttributes, error?: string | null): void;
}

export interface Tracer {
  /** Starts the span of a request. `traceparent`: the client's W3C Trace Context header. */
  start(name: string, attributes: TraceAttributes, traceparent: string | undefined): TraceSpan;
}

/** The default: tracing costs nothing. */
export const NO_TRACE: TraceSpan = { child: () => NO_TRACE, end: () => {} };

export const NO_TRACER: Tracer = { start: () => NO_TRACE };
