/** Deadlines of one job, in milliseconds, and the bounds of its attempts. */
import type { BillingTimings } from './settlement/bill.js';

export interface JobTimings extends BillingTimings {
  /** Most time in the queue for a free provider. */
  readonly queueMs: number;
  /** From the job's sending to the provider's `job_accepted`. */
  readonly acceptMs: number;
  /** From acceptance, or the last word that the provider is at work, to the first content. */
  readonly firstContentMs: number;
  /** The first content is never late before this, however quick the machine is. */
  readonly lateMs: number;
  /** A machine that gives no sign of life for this long, or several times what was expected, is left when another is free. */
  readonly silentMs: number;
  /** Between two response frames, or words that the provider is at work, while the client drains. */
  readonly betweenFramesMs: number;
  /** Time that an answer which has attemptCount may take without anything to show for it; see `Patience`. */
  readonly stallMs: number;
  /** Most time that a provider may be at work without a response frame. */
  readonly maxWorkWithoutFrameMs: number;
  /** From the final frame to `job_completed`. */
  readonly completionMs: number;
  /** From a client's going away to the signed end of what its stream had delivered. */
  readonly closingMs: number;
  /** A stream's status and headers go out this long after acceptance, even without content. */
  readonly commitMs: number;
  /** Silence after which a committed stream gets a comment. */
  readonly keepAliveMs: number;
  /** A client that takes nothing for this long is given up; and one that does not take in it what a stream may send ahead. */
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
  lateMs: 1000,
  silentMs: 8000,
  betweenFramesMs: 60_000,
  stallMs: 120_000,
  maxWorkWithoutFrameMs: 30 * 60_000,
  completionMs: 15_000,
  closingMs: 5000,
  commitMs: 10_000,
  keepAliveMs: 10_000,
  clientDrainMs: 120_000,
  overallMs: 180_000,
  contextMs: 60_000,
  ledgerMs: 5000,
  settleRetryMs: 250,
  settleRetryMaxMs: 10_000,
  settleGiveUpMs: 10 * 60_000,
};

/** Providers that one request is tried on, second ones beside a late first included. */
export const MAX_ATTEMPTS = 3;
/** Requests that wait for one model. */
export const MAX_WAITING_PER_MODEL = 256;
/** Injected when the client names no limit (spec: limits). Tokens. */
export const DEFAULT_MAX_TOKENS = 8192;
/** A stream has no more bytes than this, and this for each token that it may have: the widest of them carries twenty alternatives. */
export const MAX_STREAM_BYTES = { atLeast: 256 * 1024, perToken: 16 * 1024 };
/** Credit for what a provider had written when the client of its stream went away. It is hashed and dropped. */
export const CLOSING_CREDIT_BYTES = 4 * 1024 * 1024;
/** Returned credit is gathered to this many bytes, so that a long stream costs few messages. */
export const CREDIT_STEP_BYTES = 64 * 1024;
