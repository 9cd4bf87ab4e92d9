/** Time limits of one job in milliseconds, and its size limits: attempts, queue length, default output tokens and stream bytes. */
import type { BillingTimings } from './settlement/bill.js';

export interface JobTimings extends BillingTimings {
  /** Maximum wait in the request queue for a free provider. */
  readonly queueMs: number;
  /** Time from sending the job to the provider's `job_accepted`. */
  readonly acceptMs: number;
  /** Time from acceptance, or the last progress message, to the first content. */
  readonly firstContentMs: number;
  /** Minimum time until first content counts as late, however fast the provider is. */
  readonly lateMs: number;
  /** Minimum silence after which a provider is abandoned if another is free. The limit grows with the expected prefill time. */
  readonly silentMs: number;
  /** Maximum time between two response frames or progress messages, while the client accepts bytes. */
  readonly betweenFramesMs: number;
  /** Maximum time of a begun answer without content or progress; see `StallBudget`. */
  readonly stallMs: number;
  /** Maximum time of work without a response frame. */
  readonly maxWorkWithoutFrameMs: number;
  /** Time from the final frame to `job_completed`. */
  readonly completionMs: number;
  /** Time from a client's disconnect to the provider's signature over the delivered part. */
  readonly closingMs: number;
  /** Time from acceptance, or from a hedged attempt's start, until a stream's headers are sent without content. */
  readonly commitMs: number;
  /** Silence after which a committed stream gets a comment. */
  readonly keepAliveMs: number;
  /** Maximum time in which a client accepts no bytes, and to accept all bytes sent ahead. */
  readonly clientDrainMs: number;
  /** Time after the arrival of a request in which attempts may begin. */
  readonly overallMs: number;
  /** Validity of a job context, including its transfer to the provider. */
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

/** Maximum attempts per request, hedged ones included. */
export const MAX_ATTEMPTS = 3;
/** Maximum queued requests per model. */
export const MAX_WAITING_PER_MODEL = 256;
/** Maximum bytes of a stream: a base, plus bytes per allowed token. The widest tokens list twenty alternatives. */
export const MAX_STREAM_BYTES = { base: 256 * 1024, perToken: 16 * 1024 };
