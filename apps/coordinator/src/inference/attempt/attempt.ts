/** `Attempt`: one try of a job on one provider, from the sealed request to exactly one outcome. */
import {
  type Frame,
  INITIAL_CREDIT_BYTES,
  type JobCompleted,
  type JobContext,
  type JobFailure,
  type JobFailureCode,
  type JobMessage,
  type RequestFrames,
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
/** `progress`: content arrives, but too slowly ever to complete the answer. */
type TimedPhase = 'acceptance' | 'first_content' | 'next_frame' | 'progress' | 'completion';
/** `closing`: the client disconnected; the provider may still sign the delivered part. */
type Phase = Exclude<TimedPhase, 'progress'> | 'closing';

/** A response reported as complete. Nothing is verified yet. */
export interface CompletedAttempt extends ReadResponse {
  readonly kind: 'completed';
  readonly message: JobCompleted;
  /** Duration since the job was sent. */
  readonly elapsedMs: number;
  /** Time from sending the job to the first response frame. */
  readonly firstContentMs: number;
  /** The provider was asked to end the response early. */
  readonly recalled: boolean;
}

export type FailedAttempt =
  | { readonly kind: 'failed'; readonly failure: JobFailure }
  /** The connection ended. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'timeout'; readonly phase: TimedPhase }
  | { readonly kind: 'violated'; readonly violation: Violation }
  /** The provider read nothing of the request in time, because other requests were sent first. */
  | { readonly kind: 'unsent' }
  /** The provider's sealing key is malformed. */
  | { readonly kind: 'unsealable' }
  /** The provider could not open, or did not accept, the client's sealed request; provider or client may be at fault. */
  | { readonly kind: 'unopened'; readonly code: UnopenedCode };

const UNOPENED_CODES = ['unknown_key', 'bad_context', 'expired', 'replayed', 'unsealing_failed'] as const satisfies JobFailureCode[];
export type UnopenedCode = (typeof UNOPENED_CODES)[number];

export type AttemptOutcome =
  | CompletedAttempt
  | FailedAttempt
  /** The client disconnected and no signature came, or the coordinator is shutting down. */
  | { readonly kind: 'stopped' }
  /** Another attempt at the same job won, or found the job impossible. */
  | { readonly kind: 'overtaken' };

/** Input of an attempt. */
export interface AttemptPlan {
  readonly slot: ProviderSlot;
  readonly context: JobContext;
  /** For the provider's sealing key. Called once; throws SealingError `bad_key` on a malformed key. */
  readonly encapsulate: () => Encapsulation;
  /** The client sealed the body to this provider. Left out: the coordinator seals. */
  readonly candidate?: Pick<SealedCandidate, 'index' | 'enc'>;
  readonly estimate: LatencyEstimate;
  /** Expected time per output token, in milliseconds. */
  readonly tokenMs: number;
  /** Images beside the body, fetched for its URLs. */
  readonly fetchedImages: readonly FetchedInputImage[];
  /** Maximum prompt tokens of one image, by the provider's offer when the attempt began. */
  readonly maxImageTokens: number;
  /** Jobs of the provider besides this one when the attempt began. */
  readonly otherJobCount: number;
  readonly role: 'first' | 'retry' | 'hedge';
  /** For the headers of the response. */
  readonly route: Route;
  /** Time without content after which a second attempt may begin, in milliseconds since the start. */
  readonly lateAfterMs: number;
  /** Time without a sign of activity after which the provider may be abandoned for another. */
  readonly silentAfterMs: number;
}

/** The hedged request of an attempt. */
export interface AttemptGroup {
  /** The delivery while its headers name this attempt's provider; otherwise null. */
  deliveryOf(attempt: Attempt): Delivery | null;
  started(attempt: Attempt): void;
  accepted(): void;
  /** Writes response bytes if this attempt has won or wins now. False: more bytes than a client may receive. */
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
  /** Acceptance counts as a frame. */
  #lastFrameAt = 0;
  #lastActivityAt = this.#startedAt;
  /** Start of the provider's turn to send; null: the provider waits for the client. */
  #turnSince: number | null = null;
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

  /** Time since the provider last showed activity on the job. */
  get silentMs(): number {
    return performance.now() - this.#lastActivityAt;
  }

  /** Sends the body, sealed for the provider by this coordinator or by the client. */
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

  /** Returns credit for bytes taken by the client's connection. */
  drained(bytes: number): void {
    this.#reader?.drained(bytes);
  }

  stop(): void {
    this.#abandon({ kind: 'stopped' });
  }

  /** Ends the attempt after another one has decided the job. */
  overtake(): void {
    this.#abandon({ kind: 'overtaken' });
  }

  /** Ends the attempt of a silent provider before its deadline. Only before the first content. */
  abandonSilent(): void {
    if (this.#phase === 'acceptance' || this.#phase === 'first_content') this.#abandonLate(this.#phase);
  }

  /** Handles a disconnected client: the provider signs a begun stream within `closingMs`; other attempts end at once. */
  recall(): void {
    if (this.#isOver || this.#phase === 'closing') return;
    if ((this.#group.deliveryOf(this)?.delivered ?? 0) === 0) this.stop();
    else {
      this.#enter('closing', this.#timings.closingMs);
      this.#reader?.grantClosingCredit();
      this.#handle?.recall();
    }
  }

  /** The acceptance timeout restarts while the provider reads this request and earlier ones. */
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

  /** Prefill of a long prompt, or an answer sent as a whole, may take minutes without a frame. */
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
    // The delivery may have ended the attempt.
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
      this.#turnSince ??= performance.now();
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
    return { message, frames, reader: new ResponseReader(responses, context, onCredit) };
  }

  #receive(frame: Frame, reader: AnswerReader): Violation | null {
    if (this.#phase === 'acceptance') return 'out_of_turn';
    const read = reader.read(frame);
    if (typeof read === 'string') return read;
    this.#stallBudget.received(read.length);
    this.#turnSince = reader.isOutOfCredit ? null : this.#lastFrameAt;
    return this.#group.write(this, read, this.#lastFrameAt) ? null : 'too_large';
  }

  /** Charges the time since the provider could send, and begins a new turn. */
  #spendStallBudget(now: number): void {
    if (this.#turnSince === null) return;
    this.#stallBudget.spend(now - this.#turnSince);
    this.#turnSince = now;
  }

  #enter(phase: Phase, ms: number): void {
    this.#phase = phase;
    this.#deadline.set(ms);
  }

  #timeOut(): void {
    // A provider without credit is silent because of the client, whose own deadline applies.
    if (this.#phase === 'next_frame' && this.#group.deliveryOf(this)?.isStalled === true) this.#deadline.renew();
    else if (this.#phase === 'closing') this.#abandon({ kind: 'stopped' });
    else this.#abandonLate(this.#phase);
  }

  #abandonLate(phase: TimedPhase): void {
    const isUnsent = phase === 'acceptance' && this.#handle?.isSent() === false;
    this.#abandon(isUnsent ? { kind: 'unsent' } : { kind: 'timeout', phase });
  }

  /** Ends the attempt while the provider may still be working. */
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

/** Details of a failure describe the sealed body, so only the code is kept. */
function sealedFailure({ code }: JobFailure): FailedAttempt {
  const unopened = UNOPENED_CODES.find((known) => known === code);
  return unopened === undefined ? { kind: 'failed', failure: { code } } : { kind: 'unopened', code: unopened };
}
