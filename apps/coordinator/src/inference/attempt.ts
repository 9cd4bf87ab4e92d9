/**
 * One try of a job on one provider: seals it, follows it through its phases, opens and hashes every frame and passes it on.
 * It ends in exactly one outcome, and whatever ends it early also stops the provider.
 */
import { type Frame, INITIAL_CREDIT_BYTES, type JobCompleted, type JobContext, type JobFailure, toBase64 } from '@inference/protocol';
import { type ResponseHash, type ResponseOpener, responseHash, SealingError, sealRequest } from '@inference/protocol/crypto';
import type { JobHandle, JobSink } from '../fleet/job-sink.js';
import type { Slot } from '../fleet/slot.js';
import { CreditAccount } from './credit-account.js';
import type { Delivery } from './delivery.js';
import type { JobTimings } from './timings.js';

/** Ways in which a provider breaks the protocol of a job. */
export type Violation = 'tampered_frame' | 'credit_exceeded' | 'out_of_turn' | 'too_large';
export type TimedPhase = 'acceptance' | 'first_content' | 'next_frame' | 'completion';

export type Outcome =
  /** The provider says that it is done; nothing of it is verified yet. */
  | { readonly kind: 'completed'; readonly message: JobCompleted; readonly finished: boolean; readonly responseSha256: string }
  | { readonly kind: 'failed'; readonly failure: JobFailure }
  | { readonly kind: 'lost' }
  | { readonly kind: 'timeout'; readonly phase: TimedPhase }
  | { readonly kind: 'violated'; readonly violation: Violation }
  /** The provider's sealing key cannot be used. */
  | { readonly kind: 'unsealable' }
  /** The client went away, or the coordinator is stopping. */
  | { readonly kind: 'stopped' };

export class Attempt implements JobSink {
  readonly #delivery: Delivery;
  readonly #timings: JobTimings;
  readonly #credit: CreditAccount;
  readonly #hash: ResponseHash = responseHash();
  readonly #settle: (outcome: Outcome) => void;
  #opener: ResponseOpener | null = null;
  #handle: JobHandle | null = null;
  #phase: TimedPhase = 'acceptance';
  #timer: NodeJS.Timeout;
  #over = false;
  readonly outcome: Promise<Outcome>;

  constructor(delivery: Delivery, timings: JobTimings) {
    this.#delivery = delivery;
    this.#timings = timings;
    this.#credit = new CreditAccount((bytes) => this.#handle?.grant(bytes));
    let settle: (outcome: Outcome) => void = () => {};
    this.outcome = new Promise((resolve) => {
      settle = resolve;
    });
    this.#settle = settle;
    this.#timer = setTimeout(() => this.#timeOut(), timings.acceptMs);
  }

  /** Seals the body for the slot's provider and sends it. */
  start(slot: Slot, context: JobContext, recipientKey: Uint8Array, body: Uint8Array): void {
    this.#delivery.begin(slot.session, (bytes) => this.#credit.drained(bytes));
    try {
      const sealed = sealRequest(context, recipientKey, body);
      this.#opener = sealed.responses;
      const message = {
        type: 'job',
        context,
        enc: toBase64(sealed.enc),
        request_bytes: body.length,
        credit: INITIAL_CREDIT_BYTES,
      } as const;
      const handle = slot.start(message, sealed.frames, this);
      this.#handle = handle;
      if (this.#over) handle.cancel();
    } catch (error) {
      slot.release();
      if (!(error instanceof SealingError)) throw error;
      this.#end({ kind: 'unsealable' });
    }
  }

  /** Ends the attempt from this side. */
  stop(): void {
    this.#abandon({ kind: 'stopped' });
  }

  accepted(): void {
    if (this.#over || this.#phase !== 'acceptance') return;
    this.#enter('first_content', this.#timings.firstContentMs);
    this.#delivery.accepted();
  }

  frame(frame: Frame): void {
    if (this.#over || this.#opener === null) return;
    const violation = this.#take(frame, this.#opener);
    if (violation !== null) this.#abandon({ kind: 'violated', violation });
    else if (frame.final) this.#enter('completion', this.#timings.completionMs);
    else if (this.#phase === 'next_frame') this.#timer.refresh();
    else this.#enter('next_frame', this.#timings.betweenFramesMs);
  }

  completed(message: JobCompleted): void {
    if (this.#over) return;
    this.#end({ kind: 'completed', message, finished: this.#opener?.finished ?? false, responseSha256: this.#hash.digestHex() });
  }

  failed(failure: JobFailure): void {
    this.#end({ kind: 'failed', failure });
  }

  lost(): void {
    this.#end({ kind: 'lost' });
  }

  #take(frame: Frame, opener: ResponseOpener): Violation | null {
    if (this.#phase === 'acceptance') return 'out_of_turn';
    let plaintext: Uint8Array;
    try {
      plaintext = opener.open(frame);
    } catch (error) {
      if (error instanceof SealingError) return 'tampered_frame';
      throw error;
    }
    if (!this.#credit.spend(plaintext.length)) return 'credit_exceeded';
    this.#hash.update(plaintext);
    return this.#delivery.push(plaintext) ? null : 'too_large';
  }

  #enter(phase: TimedPhase, ms: number): void {
    clearTimeout(this.#timer);
    this.#phase = phase;
    this.#timer = setTimeout(() => this.#timeOut(), ms);
  }

  #timeOut(): void {
    // A provider without credit is silent because of the client, which has a deadline of its own.
    if (this.#phase === 'next_frame' && this.#delivery.stalled) this.#timer.refresh();
    else this.#abandon({ kind: 'timeout', phase: this.#phase });
  }

  /** Ends the attempt while the provider may still be at work. */
  #abandon(outcome: Outcome): void {
    if (this.#over) return;
    this.#end(outcome);
    this.#handle?.cancel();
  }

  #end(outcome: Outcome): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    if (outcome.kind !== 'completed' && !this.#delivery.committed) this.#delivery.withdraw();
    this.#settle(outcome);
  }
}
