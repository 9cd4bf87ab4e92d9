/**
 * What the running of jobs tells whoever counts it: the one place through which placing, trying and delivering are observed.
 * Codes and times alone; a listener must be quick and must not throw.
 */

export type JobEvent =
  /** A request had its turn, or was refused one. `outcome` is `seated` or the reason. */
  | { readonly type: 'placed'; readonly outcome: string; readonly waitMs: number }
  /** A provider was tried and failed before anything was committed; `reason` is a code of ours. */
  | { readonly type: 'attempt_failed'; readonly reason: string; readonly retried: boolean }
  /** A second provider was asked beside a slow first one: it was sent, its answer was taken, or it was cancelled. */
  | { readonly type: 'hedge'; readonly outcome: 'sent' | 'won' | 'lost' }
  /** A stream's first content went out, so long after the request came. */
  | { readonly type: 'first_token'; readonly ms: number };

export interface JobObserver {
  event(event: JobEvent): void;
  /** Content went out to a client, so long after the frame that brought it came. Called for every write. */
  relayed(ms: number): void;
}

export const NOT_OBSERVED: JobObserver = { event: () => {}, relayed: () => {} };
