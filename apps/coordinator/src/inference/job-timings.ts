/** Timeouts of a job, in milliseconds, and limits on attempts per job, queue length per model and bytes per stream. */
import type { BillingTimings } from './settlement/bill.js';

export interface JobTimings extends BillingTimings {
  /** Maximum wait in the request queue for a provider slot. Image jobs may wait longer, see `ImageJob.waitUntil`. */
  readonly queueMs: number;
  /** Maximum time for the provider's `job_accepted`. Restarts while the request is being sent. */
  readonly acceptMs: number;
  /** Maximum time from acceptance, or the last progress message, to the first content. */
  readonly firstContentMs: number;
  /** Minimum time from the start of an attempt until its first content is late, even on a fast provider. */
  readonly lateMs: number;
  /** Minimum silence after which a provider is abandoned if another is idle. The limit grows with the expected prefill time. */
  readonly silentMs: number;
  /** Maximum time between two response frames or progress messages, while the client accepts bytes. */
  readonly betweenFramesMs: number;
  /** Maximum time without content or progress after the answer has begun; see `StallBudget`. */
  readonly stallMs: number;
  /** Time without a response frame after which progress messages no longer extend the timeouts. */
  readonly maxWorkWithoutFrameMs: number;
  /** Maximum time from the final frame to `job_completed`. */
  readonly completionMs: number;
  /** Maximum time from a client's disconnect to the provider's signature over the part sent so far. */
  readonly closingMs: number;
  /** Time from acceptance, or from the start of a hedged attempt, until a stream's headers are sent even without content. */
  readonly commitMs: number;
  /** Silence after which a stream gets a keep-alive. */
  readonly keepAliveMs: number;
  /** Maximum time for a slow client to catch up. On Linux, where progress is visible, the time restarts while the client reads. */
  readonly clientDrainMs: number;
  /** Time after the reservation of the cost during which attempts may begin. */
  readonly overallMs: number;
  /** Validity of a job context, the terms that the provider gets. The transfer of the request must end in this time. */
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

/** Maximum attempts of a job, with all its models together, hedged ones included. */
export const MAX_ATTEMPTS = 3;
export const MAX_WAITING_PER_MODEL = 256;
/**
 * Maximum bytes of a stream: a base, plus an amount per output token and per byte of the request.
 *
 * The largest tokens have twenty log-probability alternatives. Streams of `/v1/responses` repeat instructions and tools three times, with
 * defaults filled in. Streams of `/v1/completions` with `echo` repeat the prompt twice in each choice.
 */
export const MAX_STREAM_BYTES = { base: 256 * 1024, perToken: 16 * 1024, perRequestByte: 16 };
