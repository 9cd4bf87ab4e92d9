/** Deadlines of one job, in milliseconds, and the bounds of its attempts. */
export interface JobTimings {
  /** Most time in the queue for a free provider. */
  readonly queueMs: number;
  /** From the job's sending to the provider's `job_accepted`. */
  readonly acceptMs: number;
  /** From acceptance to the first content. */
  readonly firstContentMs: number;
  /** Between two response frames, while the client drains. */
  readonly betweenFramesMs: number;
  /** From the final frame to `job_completed`. */
  readonly completionMs: number;
  /** A stream's status and headers go out this long after acceptance, even without content. */
  readonly commitMs: number;
  /** Silence after which a committed stream gets a comment. */
  readonly keepAliveMs: number;
  /** A client that takes nothing for this long is given up. */
  readonly clientDrainMs: number;
  /** No new attempt begins later than this after the request came. */
  readonly overallMs: number;
  /** Validity of a job context, which covers its way to the provider. */
  readonly contextMs: number;
}

export const JOB_TIMINGS: JobTimings = {
  queueMs: 30_000,
  acceptMs: 20_000,
  firstContentMs: 120_000,
  betweenFramesMs: 60_000,
  completionMs: 15_000,
  commitMs: 10_000,
  keepAliveMs: 10_000,
  clientDrainMs: 120_000,
  overallMs: 180_000,
  contextMs: 60_000,
};

/** Providers that one request is tried on. */
export const MAX_ATTEMPTS = 3;
/** Requests that wait for one model. */
export const MAX_WAITING_PER_MODEL = 256;
/** Injected when the client names no limit (spec: limits). Tokens. */
export const DEFAULT_MAX_TOKENS = 8192;
/** Returned credit is gathered to this many bytes, so that a long stream costs few messages. */
export const CREDIT_STEP_BYTES = 64 * 1024;
