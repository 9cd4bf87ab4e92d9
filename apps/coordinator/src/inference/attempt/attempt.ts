/** `Attempt` runs a job once on one provider: sends the encrypted request, applies the timeouts, and resolves to exactly one outcome. */
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
/** Phase in which a timeout expired. `progress` means that the answer had begun, and its `StallBudget` ran out. */
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
  /** The provider's sealing key is malformed, so the request could not be encrypted. */
  | { readonly kind: 'unsealable' }
  /** The provider could not open the client's sealed request, or rejected it. Provider or client may be at fault. */
  | { readonly kind: 'unopened'; readonly code: UnopenedCode };

const UNOPENED_CODES = ['unknown_key', 'bad_context', 'expired', 'replayed', 'unsealing_failed'] as const satisfies JobFailureCode[];
export type UnopenedCode = (typeof UNOPENED_CODES)[number];

export type AttemptOutcome =
  | CompletedAttempt
  | FailedAttempt
  /** The coordinator stopped the attempt: the client disconnected and got no signed part of an answer, or a shutdown began. */
  | { readonly kind: 'stopped' }
  /** Another attempt of the same job was faster. */
  | { readonly kind: 'overtaken' };

/** Input of an attempt. */
export interface AttemptPlan {
  /** Reserved slot of the provider. The attempt starts or releases the slot. */
  readonly slot: ProviderSlot;
  /** Terms of the job in clear: model, limits, provider and times. The encryption binds the request to these terms. */
  readonly context: JobContext;
  /** Returns an HPKE encapsulation to the provider's sealing key, in plain mode. Throws SealingError `bad_key` on a malformed key. */
  readonly encapsulate: () => Encapsulation;
  /** Set if the client sealed the body to this provider. Otherwise, the coordinator seals it. */
  readonly candidate?: Pick<SealedCandidate, 'index' | 'enc'>;
  /** Expected times to the first token and to the end. */
  readonly estimate: LatencyEstimate;
  /** Names of the server-sent events that can end a stream, such as `message_stop`. Empty if the format has none. */
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
  readonly route: Route;
  /** Time since the start without content, in milliseconds, after which a second attempt may begin. */
  readonly lateAfterMs: number;
  /** Time without any activity, in milliseconds, after which the attempt may be abandoned for another provider. */
  readonly silentAfterMs: number;
}

/** Callbacks of an attempt, implemented by `HedgedRequest`, which runs up to two attempts at a time. */
export interface AttemptGroup {
  /** The response to the client, if its headers name this attempt's provider. Null for the other attempt. */
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
  readonly #resolve: (outcome: AttemptOutcome) => void;
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
    let resolveOutcome: (outcome: AttemptOutcome) => void = () => {};
    this.outcome = new Promise((resolve) => {
      resolveOutcome = resolve;
    });
    this.#resolve = resolveOutcome;
    this.#deadline.set(timings.acceptMs);
  }

  get isAccepted(): boolean {
    return this.#phase !== 'acceptance';
  }

  get elapsedMs(): number {
    return performance.now() - this.#startedAt;
  }

  /** Time since the provider's last activity on this job. */
  get silentMs(): number {
    return performance.now() - this.#lastActivityAt;
  }

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

  /** Lets the provider send as many bytes again as the client's connection has taken. */
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

  /** Handles the client's disconnect. If the client got content, asks the provider to sign its output so far within `closingMs`. */
  recall(): void {
    if (this.#isOver || this.#phase === 'closing') return;
    if ((this.#group.deliveryOf(this)?.delivered ?? 0) === 0) this.stop();
    else {
      this.#enter('closing', this.#timings.closingMs);
      this.#reader?.grantClosingCredit();
      this.#handle?.recall();
    }
  }

  /** Called while the provider's connection sends queued bytes. Restarts the acceptance timeout if this job's first message is sent. */
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

  /**
   * Handles a progress message. Restarts the timeout, because a long prefill, or an answer that is not a stream, may take minutes.
   *
   * Has no effect if no frame has arrived for `maxWorkWithoutFrameMs`.
   */
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

  /** Encrypted request, and a reader for its answer. Throws SealingError `bad_key` on a malformed sealing key. */
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
    const { enc, frames, responseOpener: responses } = sealRequest(context, encapsulate(), body, images);
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
    // The provider may send nothing until the slow client has read. The client's own timeout applies.
    if (this.#phase === 'next_frame' && this.#group.deliveryOf(this)?.isStalled === true) this.#deadline.renew();
    else if (this.#phase === 'closing') this.#abandon({ kind: 'stopped' });
    else this.#abandonLate(this.#phase);
  }

  /** Abandons the attempt as timed out, or as `unsent` if its first message has not left the queue. */
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
    this.#resolve(outcome);
  }
}

function fetchedMembers(images: readonly FetchedInputImage[]): Pick<JobMessage, 'fetched_images'> {
  if (images.length === 0) return {};
  return { fetched_images: images.map(({ mediaType, bytes }) => ({ media_type: mediaType, bytes: bytes.length })) };
}

/** Failure of a sealed request. Keeps only the code: other details would describe the sealed body. */
function sealedFailure({ code }: JobFailure): FailedAttempt {
  const unopened = UNOPENED_CODES.find((known) => known === code);
  return unopened === undefined ? { kind: 'failed', failure: { code } } : { kind: 'unopened', code: unopened };
}
