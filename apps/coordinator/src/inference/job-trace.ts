/**
 * What a job's way is told to, part by part, where somebody follows single jobs: names and attributes are codes, counts and ids of
 * jobs and providers. Never an account, a key, a prompt or an answer. Nobody follows by default, and then none of it costs anything.
 */

export type TraceAttributes = Readonly<Record<string, string | number | boolean>>;

/** A part of a job's way that has attemptCount. */
export interface TraceSpan {
  /** A part of it that begins now. */
  part(name: string, attributes?: TraceAttributes): TraceSpan;
  /** It is over, and how. `error`: a code of ours, where it went wrong. */
  end(attributes?: TraceAttributes, error?: string | null): void;
}

export interface Tracer {
  /** A request begins. `traceparent`: what its client says of the trace that it belongs to (W3C Trace Context). */
  begin(name: string, attributes: TraceAttributes, traceparent: string | undefined): TraceSpan;
}

export const UNTRACED: TraceSpan = { part: () => UNTRACED, end: () => {} };

export const NO_TRACER: Tracer = { begin: () => UNTRACED };
