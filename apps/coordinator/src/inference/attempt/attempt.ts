/** `Attempt` runs a job once on one provider: sends the encrypted request, applies the timeouts, and ends with exactly one outcome. */
import {
  type Frame,
  INITIAL_CREDIT_BYTES,
  type JobCompleted,
  type JobContext,
  type JobFailure,
  type JobFailureCode,
  type JobMessage,
  type RequestFrames,
  type RequiredMember,
  toBase64,
} from '@inference/protocol';
import { type Encapsulation, SealingError, sealRequest } from '@inference/protocol/crypto';
import type { LatencyEstimate } from '@inference/scheduler';
import type { JobHandle, JobSink, ProviderSlot } from '../../providers/provider-connection.js';
import { Deadline } from '../deadline.js';
import type { Delivery } from '../delivery/delivery.js';
import type { JobTimings } from '../job-timings.js';
import type { FetchedInputImage } from '../request/image-fetcher.js';
import type { Route } from '../request/job-routing.js';
import type { SealedCandidate } from '../request/sealed-request.js';
import { RelayedAnswerReader, relayedRequestFrames } from './relayed-answer.js';
import { type AnswerReader, type ReadResponse, ResponseReader, type ResponseViolation } from './response-reader.js';
import { StallBudget } from './stall-budget.js';

/** Ways in which a provider breaks the job protocol. */
type Violation = ResponseViolation | 'out_of_turn' | 'too_large';
/** In phase `progress`, content arrives too slowly to complete the answer. */
type TimedPhase = 'acceptance' | 'first_content' | 'next_frame' | 'progress' | 'completion';
/** In phase `closing`, the client has disconnected, and the provider may still sign the part delivered so far. */
type Phase = Exclude<TimedPhase, 'progress'> | 'closing';

/** A response that the provider reported as complete. Not verified yet. */
export interface CompletedAttempt extends ReadResponse {
  readonly kind: 'completed';
  readonly message: JobCompleted;
  /** Duration since the job was sent. */
  readonly elapsedMs: number;
  /** Time from sending the job to the first response frame. */
  readonly firstContentMs: number;
  /** Whether the coordinator asked the provider to end the response early. */
  readonly recalled: boolean;
}

export type FailedAttempt =
  | { readonly kind: 'failed'; readonly failure: JobFailure }
  /** The provider's connection closed. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'timeout'; readonly phase: TimedPhase }
  | { readonly kind: 'violated'; readonly violation: Violation }
  /** The request was still queued behind other requests on the provider's connection when its time ran out. */
  | { readonly kind: 'unsent' }
  /** The provider's sealing key is malformed. */
  | { readonly kind: 'unsealable' }
  /** The provider could not open the client's sealed request, or rejected it. Provider or client may be at fault. */
  | { readonly kind: 'unopened'; readonly code: UnopenedCode };

const UNOPENED_CODES = ['unknown_key', 'bad_context', 'expired', 'replayed', 'unsealing_failed'] as const satisfies JobFailureCode[];
export type UnopenedCode = (typeof UNOPENED_CODES)[number];

export type AttemptOutcome =
  | CompletedAttempt
  | FailedAttempt
  /** The client disconnected before the provider signed anything, or the coordinator is shutting down. */
  | { readonly kind: 'stopped' }
  /** Another attempt of the same job decided its outcome first. */
  | { readonly kind: 'overtaken' };

/** Input of an attempt: the slot, the terms of the job on its provider, and the expectations by which lateness is measured. */
export interface AttemptPlan {
  readonly slot: ProviderSlot;
  readonly context: JobContext;
  /** Returns an HPKE encapsulation to the provider's sealing key, in plain mode. Throws SealingError `bad_key` on a malformed key. */
  readonly encapsulate: () => Encapsulation;
  /** Set if the client sealed the body to this provider. Otherwise, the coordinator seals it. */
  readonly candidate?: Pick<SealedCandidate, 'index' | 'enc'>;
  readonly estimate: LatencyEstimate;
  /** Names of the events of which one ends a stream. Empty if none does. */
  readonly terminalEvents: readonly string[];
  /** Member by which clients recognize an unstreamed response. Null if it has none. */
  readonly bodyMember: RequiredMember | null;
  /** Expected time per output token, in milliseconds. */
  readonly tokenMs: number;
  /** Images that the coordinator fetched for the URLs in the body. Sent after the body. */
  readonly fetchedImages: readonly FetchedInputImage[];
  /** Maximum prompt tokens of one image, as offered by the provider when the attempt began. */
  readonly maxImageTokens: number;
  /** Number of other jobs on the provider when the attempt began. */
  readonly otherJobCount: number;
  readonly role: 'first' | 'retry' | 'hedge';
  /** Written to the headers of the response. */
  readonly route: Route;
  /** Time since the start without content, in milliseconds, after which a second attempt may begin. */
  readonly lateAfterMs: number;
  /** Time without any activity, in milliseconds, after which the attempt may be abandoned for another provider. */
  readonly silentAfterMs: number;
}

/** Callbacks of an attempt, implemented by `HedgedRequest`. */
export interface AttemptGroup {
  /** The delivery, if its headers name this attempt's provider. */
  deliveryOf(attempt: Attempt): Delivery | null;
  /** Called before the request is sent. */
  started(attempt: Attempt): void;
  accepted(): void;
  /** Writes response bytes if this attempt has won or wins with them. Returns false if the response exceeds its maximum size. */
  write(attempt: Attempt, bytes: Uint8Array, receivedAt: number): boolean;
}

export class Attempt implements JobSink {
  readonly plan: AttemptPlan;
  readonly #group: AttemptGroup;
  readonly #timings: JobTimings;
  readonly #stallBudget: StallBudget;
  readonly #settle: (outcome: AttemptOutcome) => void;
  /** Null until the request is sealed. */
  #reader: AnswerReader | null = null;
  #handle: JobHandle | null = null;
  readonly #startedAt = performance.now();
  #firstContentAt: number | null = null;
  #phase: Phase = 'acceptance';
  readonly #deadline = new Deadline(() => this.#timeOut());
  /** Time of the newest frame, or of the acceptance, by `performance.now`. */
  #lastFrameAt = 0;
  #lastActivityAt = this.#startedAt;
  /** Start of the wait that is not yet charged to the stall budget. Null while the provider has no credit or has sent no frame. */
  #waitingSince: number | null = null;
  #isOver = false;
  readonly outcome: Promise<AttemptOutcome>;

  constructor(plan: AttemptPlan, group: AttemptGroup, timings: JobTimings) {
    this.plan = plan;
    this.#group = group;
    this.#timings = timings;
    this.#stallBudget = new StallBudget({ maxMs: timings.stallMs, tokenMs: plan.tokenMs, maxTokens: plan.context.max_tokens });
    let settle: (outcome: AttemptOutcome) => void = () => {};
    this.outcome = new Promise((resolve) => {
      settle = resolve;
    });
    this.#settle = settle;
    this.#deadline.set(timings.acceptMs);
  }

  get isAccepted(): boolean {
    return this.#phase !== 'acceptance';
  }

  /** Time since the start. */
  get elapsedMs(): number {
    return performance.now() - this.#startedAt;
  }

  /** Time since the provider's last activity on this job. */
  get silentMs(): number {
    return performance.now() - this.#lastActivityAt;
  }

  /** Sends the request to the provider. */
  start(body: Uint8Array): void {
    const { slot } = this.plan;
    this.#group.started(this);
    try {
      const { message, frames, reader } = this.#exchange(body);
      this.#reader = reader;
      const handle = slot.start(message, frames, this);
      this.#handle = handle;
      if (this.#isOver) handle.cancel();
    } catch (error) {
      slot.release();
      if (!(error instanceof SealingError)) throw error;
      this.#end({ kind: 'unsealable' });
    }
  }

  /** Returns credit for bytes that the client's connection has taken. */
  drained(bytes: number): void {
    this.#reader?.drained(bytes);
  }

  stop(): void {
    this.#abandon({ kind: 'stopped' });
  }

  /** Ends the attempt because another attempt has decided the job. */
  overtake(): void {
    this.#abandon({ kind: 'overtaken' });
  }

  /** Ends the attempt of a silent provider before its timeout. No effect after the first content. */
  abandonSilent(): void {
    if (this.#phase === 'acceptance' || this.#phase === 'first_content') this.#abandonLate(this.#phase);
  }

  /** Handles a client's disconnect. If the client got content, the provider has `closingMs` to sign its output so far. */
  recall(): void {
    if (this.#isOver || this.#phase === 'closing') return;
    if ((this.#group.deliveryOf(this)?.delivered ?? 0) === 0) this.stop();
    else {
      this.#enter('closing', this.#timings.closingMs);
      this.#reader?.grantClosingCredit();
      this.#handle?.recall();
    }
  }

  /** Reports progress of the provider's send queue. The acceptance timeout restarts once the first message of this job was sent. */
  sending(): void {
    if (this.#isOver || this.#phase !== 'acceptance') return;
    this.#lastActivityAt = performance.now();
    if (this.#handle?.isSent() === true) this.#deadline.renew();
  }

  accepted(): void {
    if (this.#isOver || this.#phase !== 'acceptance') return;
    this.#lastFrameAt = performance.now();
    this.#lastActivityAt = this.#lastFrameAt;
    this.#enter('first_content', this.#timings.firstContentMs);
    this.#group.accepted();
  }

  /** Restarts the timeout without a frame, because a long prefill, or an answer that is not a stream, may take minutes. */
  progressed(): void {
    if (this.#isOver || (this.#phase !== 'first_content' && this.#phase !== 'next_frame')) return;
    const now = performance.now();
    if (now - this.#lastFrameAt >= this.#timings.maxWorkWithoutFrameMs) return;
    this.#lastActivityAt = now;
    this.#spendStallBudget(now);
    this.#stallBudget.reportedProgress();
    if (this.#stallBudget.isExhausted) this.#abandon({ kind: 'timeout', phase: 'progress' });
    else this.#deadline.renew();
  }

  frame(frame: Frame): void {
    if (this.#isOver || this.#reader === null) return;
    this.#lastFrameAt = performance.now();
    this.#lastActivityAt = this.#lastFrameAt;
    this.#firstContentAt ??= this.#lastFrameAt;
    this.#spendStallBudget(this.#lastFrameAt);
    const violation = this.#receive(frame, this.#reader);
    // The delivery may have ended the attempt during the write.
    if (this.#isOver) return;
    if (violation !== null) this.#abandon({ kind: 'violated', violation });
    else if (this.#phase === 'closing') return;
    else if (frame.final) this.#enter('completion', this.#timings.completionMs);
    else if (this.#stallBudget.isExhausted) this.#abandon({ kind: 'timeout', phase: 'progress' });
    else if (this.#phase === 'next_frame') this.#deadline.renew();
    else this.#enter('next_frame', this.#timings.betweenFramesMs);
  }

  completed(message: JobCompleted): void {
    if (this.#isOver || this.#reader === null) return;
    const now = performance.now();
    this.#end({
      kind: 'completed',
      message,
      ...this.#reader.end(),
      elapsedMs: now - this.#startedAt,
      firstContentMs: (this.#firstContentAt ?? now) - this.#startedAt,
      recalled: this.#phase === 'closing',
    });
  }

  failed(failure: JobFailure): void {
    this.#end(this.plan.candidate === undefined ? { kind: 'failed', failure } : sealedFailure(failure));
  }

  lost(): void {
    this.#end({ kind: 'lost' });
  }

  /** Throws SealingError `bad_key` on a malformed sealing key. */
  #exchange(body: Uint8Array): { readonly message: JobMessage; readonly frames: RequestFrames; readonly reader: AnswerReader } {
    const { context, candidate, encapsulate, fetchedImages } = this.plan;
    const onCredit = (bytes: number): void => {
      this.#waitingSince ??= performance.now();
      this.#handle?.grant(bytes);
    };
    if (candidate !== undefined) {
      return {
        message: {
          type: 'job',
          context,
          enc: toBase64(candidate.enc),
          request_bytes: body.length,
          credit: INITIAL_CREDIT_BYTES,
          e2e: { v: 1, recipient: candidate.index },
        },
        frames: relayedRequestFrames(context.job_id, body),
        reader: new RelayedAnswerReader(context.job_id, onCredit),
      };
    }
    const images = fetchedImages.map(({ bytes }) => bytes);
    const { enc, frames, responses } = sealRequest(context, encapsulate(), body, images);
    const message: JobMessage = {
      type: 'job',
      context,
      enc: toBase64(enc),
      request_bytes: images.reduce((sum, { length }) => sum + length, body.length),
      credit: INITIAL_CREDIT_BYTES,
      ...fetchedMembers(fetchedImages),
    };
    return { message, frames, reader: new ResponseReader(responses, context, this.plan, onCredit) };
  }

  #receive(frame: Frame, reader: AnswerReader): Violation | null {
    if (this.#phase === 'acceptance') return 'out_of_turn';
    const read = reader.read(frame);
    if (typeof read === 'string') return read;
    this.#stallBudget.received(read.length);
    this.#waitingSince = reader.isOutOfCredit ? null : this.#lastFrameAt;
    return this.#group.write(this, read, this.#lastFrameAt) ? null : 'too_large';
  }

  /** Charges the waiting time since `#waitingSince` to the stall budget, and restarts the measurement. */
  #spendStallBudget(now: number): void {
    if (this.#waitingSince === null) return;
    this.#stallBudget.spend(now - this.#waitingSince);
    this.#waitingSince = now;
  }

  #enter(phase: Phase, ms: number): void {
    this.#phase = phase;
    this.#deadline.set(ms);
  }

  #timeOut(): void {
    // A provider without credit waits for the client, which has its own timeout.
    if (this.#phase === 'next_frame' && this.#group.deliveryOf(this)?.isStalled === true) this.#deadline.renew();
    else if (this.#phase === 'closing') this.#abandon({ kind: 'stopped' });
    else this.#abandonLate(this.#phase);
  }

  #abandonLate(phase: TimedPhase): void {
    const isUnsent = phase === 'acceptance' && this.#handle?.isSent() === false;
    this.#abandon(isUnsent ? { kind: 'unsent' } : { kind: 'timeout', phase });
  }

  /** Ends the attempt and cancels the job at the provider. */
  #abandon(outcome: AttemptOutcome): void {
    if (this.#isOver) return;
    this.#end(outcome);
    this.#handle?.cancel();
  }

  #end(outcome: AttemptOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#deadline.clear();
    const delivery = outcome.kind === 'completed' ? null : this.#group.deliveryOf(this);
    if (delivery !== null && !delivery.isCommitted) delivery.withdraw();
    this.#settle(outcome);
  }
}

function fetchedMembers(images: readonly FetchedInputImage[]): Pick<JobMessage, 'fetched_images'> {
  if (images.length === 0) return {};
  return { fetched_images: images.map(({ mediaType, bytes }) => ({ media_type: mediaType, bytes: bytes.length })) };
}

/** Keeps only the code: other details of a failure describe the sealed body. */
function sealedFailure({ code }: JobFailure): FailedAttempt {
  const unopened = UNOPENED_CODES.find((known) => known === code);
  return unopened === undefined ? { kind: 'failed', failure: { code } } : { kind: 'unopened', code: unopened };
}
