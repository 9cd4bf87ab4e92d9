/**
 * One try of a job on one provider: seals it, follows it through its phases, opens and hashes every frame and passes it on.
 * It ends in exactly one outcome, and whatever ends it early also stops the provider.
 */
import {
  type Frame,
  INITIAL_CREDIT_BYTES,
  type JobCompleted,
  type JobContext,
  type JobFailure,
  toBase64,
  UsageReader,
  type UsageReport,
} from '@inference/protocol';
import {
  type Encapsulation,
  type ResponseHash,
  type ResponseOpener,
  responseHash,
  SealingError,
  sealRequest,
} from '@inference/protocol/crypto';
import type { JobHandle, JobSink, ProviderConnection, ProviderSlot } from '../../providers/provider-connection.js';
import { Deadline } from '../deadline.js';
import type { JobTimings } from '../job-timings.js';
import { CreditAccount } from './credit-account.js';
import type { StallBudget } from './stall-budget.js';
import { StreamLines } from './stream-lines.js';

/** Ways in which a provider breaks the protocol of a job. `unverifiable`: its stream has lines that clients do not count as signed. */
export type Violation = 'tampered_frame' | 'credit_exceeded' | 'out_of_turn' | 'too_large' | 'unverifiable';
/** `progress`: content comes, but so little of it that the answer would never be done. */
export type TimedPhase = 'acceptance' | 'first_content' | 'next_frame' | 'progress' | 'completion';
/** `closing`: the client has gone, and the signed end of what it got is waited for. */
type Phase = Exclude<TimedPhase, 'progress'> | 'closing';

export type AttemptOutcome =
  /** The provider says that it is done; nothing of it is verified yet. */
  | {
      readonly kind: 'completed';
      readonly message: JobCompleted;
      readonly finished: boolean;
      readonly responseSha256: string;
      /** Of the response, hashed. */
      readonly bytes: number;
      /** The usage that the response reports to its client. */
      readonly reportedUsage: UsageReport;
      /** From the sending of the job. */
      readonly elapsedMs: number;
      /** From the sending of the job to the first response frame. */
      readonly firstContentMs: number;
      /** The provider was told to end it where it stood. */
      readonly recalled: boolean;
    }
  | { readonly kind: 'failed'; readonly failure: JobFailure }
  | { readonly kind: 'lost' }
  | { readonly kind: 'timeout'; readonly phase: TimedPhase }
  | { readonly kind: 'violated'; readonly violation: Violation }
  /** The provider took nothing of the request in time, because other requests waited to be sent to it. */
  | { readonly kind: 'unsent' }
  /** The provider's sealing key cannot be used. */
  | { readonly kind: 'unsealable' }
  /** The client went away and nothing signed came, or the coordinator is stopping. */
  | { readonly kind: 'stopped' }
  /** Another attempt at the same job was quicker, or found that it cannot be done. */
  | { readonly kind: 'overtaken' };

/** Where the bytes of an attempt go; see `Delivery`. */
export interface Outlet {
  readonly committed: boolean;
  readonly stalled: boolean;
  readonly delivered: number;
  begin(provider: ProviderConnection, grant: (bytes: number) => void): void;
  /** The provider has taken the job. */
  accepted(): void;
  push(bytes: Uint8Array, cameAt: number): boolean;
  withdraw(): void;
}

/** Where an attempt goes and what it is sealed with. */
export interface AttemptKeys {
  readonly slot: ProviderSlot;
  readonly context: JobContext;
  /** For the key of the slot's provider. Called once; throws SealingError `bad_key` on a malformed key. */
  readonly encapsulate: () => Encapsulation;
}

export class Attempt implements JobSink {
  readonly #delivery: Outlet;
  readonly #timings: JobTimings;
  readonly #credit: CreditAccount;
  readonly #stallBudget: StallBudget;
  readonly #hash: ResponseHash = responseHash();
  readonly #settle: (outcome: AttemptOutcome) => void;
  #opener: ResponseOpener | null = null;
  /** Null: the answer is no stream. */
  #lines: StreamLines | null = null;
  /** Null: images, whose body is found and read when they are all there. */
  #usage: UsageReader | null = null;
  #handle: JobHandle | null = null;
  #bytes = 0;
  readonly #startedAt = performance.now();
  #firstContentAt: number | null = null;
  #phase: Phase = 'acceptance';
  readonly #deadline = new Deadline(() => this.#timeOut());
  /** Acceptance counts as one. */
  #lastFrameAt = 0;
  #lastSignAt = this.#startedAt;
  /** Since when the provider could send more of what it began; null: it is the client that is waited for. */
  #turnSince: number | null = null;
  #over = false;
  readonly outcome: Promise<AttemptOutcome>;

  constructor(delivery: Outlet, timings: JobTimings, stallBudget: StallBudget) {
    this.#delivery = delivery;
    this.#timings = timings;
    this.#stallBudget = stallBudget;
    this.#credit = new CreditAccount((bytes) => {
      this.#turnSince ??= performance.now();
      this.#handle?.grant(bytes);
    });
    let settle: (outcome: AttemptOutcome) => void = () => {};
    this.outcome = new Promise((resolve) => {
      settle = resolve;
    });
    this.#settle = settle;
    this.#deadline.set(timings.acceptMs);
  }

  /** Since the sending of the job, in milliseconds. */
  get elapsedMs(): number {
    return performance.now() - this.#startedAt;
  }

  /** Since the provider last showed that it is at work on the job, in milliseconds. */
  get silentMs(): number {
    return performance.now() - this.#lastSignAt;
  }

  /** Seals the body for the slot's provider, and sends it. */
  start({ slot, context, encapsulate }: AttemptKeys, body: Uint8Array): void {
    this.#delivery.begin(slot.provider, (bytes) => this.#credit.drained(bytes));
    try {
      const sealed = sealRequest(context, encapsulate(), body);
      this.#opener = sealed.responses;
      if (context.stream) this.#lines = new StreamLines();
      if (context.endpoint !== '/v1/images/generations') this.#usage = new UsageReader(context.endpoint, context.stream);
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

  /** Ends the attempt because another one has decided the job. */
  overtake(): void {
    this.#abandon({ kind: 'overtaken' });
  }

  /** Ends the attempt of a provider that is silent, before its deadline. Only before the first content. */
  leave(): void {
    if (this.#phase === 'acceptance' || this.#phase === 'first_content') this.#abandonLate(this.#phase);
  }

  /**
   * The client has gone. When a stream had delivered something, its provider is asked to sign that, and has a moment for it;
   * otherwise the attempt ends here.
   */
  recall(): void {
    if (this.#over || this.#phase === 'closing') return;
    if (this.#delivery.delivered === 0) this.stop();
    else {
      this.#enter('closing', this.#timings.closingMs);
      this.#credit.lift();
      this.#handle?.recall();
    }
  }

  /** The time for acceptance begins anew while the provider takes what is sent before and of this request. */
  sending(): void {
    if (this.#over || this.#phase !== 'acceptance') return;
    this.#lastSignAt = performance.now();
    if (this.#handle?.isSent() === true) this.#deadline.renew();
  }

  accepted(): void {
    if (this.#over || this.#phase !== 'acceptance') return;
    this.#lastFrameAt = performance.now();
    this.#lastSignAt = this.#lastFrameAt;
    this.#enter('first_content', this.#timings.firstContentMs);
    this.#delivery.accepted();
  }

  /** Reading a long prompt, or writing an answer that goes out whole, may take minutes. */
  progressed(): void {
    if (this.#over || (this.#phase !== 'first_content' && this.#phase !== 'next_frame')) return;
    const now = performance.now();
    if (now - this.#lastFrameAt >= this.#timings.maxWorkWithoutFrameMs) return;
    this.#lastSignAt = now;
    this.#spendPatience(now);
    this.#stallBudget.working();
    if (this.#stallBudget.isOver) this.#abandon({ kind: 'timeout', phase: 'progress' });
    else this.#deadline.renew();
  }

  frame(frame: Frame): void {
    if (this.#over || this.#opener === null) return;
    this.#lastFrameAt = performance.now();
    this.#lastSignAt = this.#lastFrameAt;
    this.#firstContentAt ??= this.#lastFrameAt;
    this.#spendPatience(this.#lastFrameAt);
    const violation = this.#take(frame, this.#opener);
    // The delivery may have ended it.
    if (this.#over) return;
    if (violation !== null) this.#abandon({ kind: 'violated', violation });
    else if (this.#phase === 'closing') return;
    else if (frame.final) this.#enter('completion', this.#timings.completionMs);
    else if (this.#stallBudget.isOver) this.#abandon({ kind: 'timeout', phase: 'progress' });
    else if (this.#phase === 'next_frame') this.#deadline.renew();
    else this.#enter('next_frame', this.#timings.betweenFramesMs);
  }

  completed(message: JobCompleted): void {
    if (this.#over) return;
    const now = performance.now();
    this.#end({
      kind: 'completed',
      message,
      finished: this.#opener?.finished ?? false,
      responseSha256: this.#hash.digestHex(),
      bytes: this.#bytes,
      reportedUsage: this.#usage?.end() ?? [],
      elapsedMs: now - this.#startedAt,
      firstContentMs: (this.#firstContentAt ?? now) - this.#startedAt,
      recalled: this.#phase === 'closing',
    });
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
    if (this.#lines?.take(plaintext) === false) return 'unverifiable';
    this.#hash.update(plaintext);
    this.#usage?.push(plaintext);
    this.#bytes += plaintext.length;
    this.#stallBudget.got(plaintext.length);
    this.#turnSince = this.#credit.isUsedUp ? null : this.#lastFrameAt;
    return this.#delivery.push(plaintext, this.#lastFrameAt) ? null : 'too_large';
  }

  /** The provider's turn until now is over, and the next one begins. */
  #spendPatience(now: number): void {
    if (this.#turnSince === null) return;
    this.#stallBudget.spend(now - this.#turnSince);
    this.#turnSince = now;
  }

  #enter(phase: Phase, ms: number): void {
    this.#phase = phase;
    this.#deadline.set(ms);
  }

  #timeOut(): void {
    // A provider without credit is silent because of the client, which has a deadline of its own.
    if (this.#phase === 'next_frame' && this.#delivery.stalled) this.#deadline.renew();
    else if (this.#phase === 'closing') this.#abandon({ kind: 'stopped' });
    else this.#abandonLate(this.#phase);
  }

  #abandonLate(phase: TimedPhase): void {
    const isUnsent = phase === 'acceptance' && this.#handle?.isSent() === false;
    this.#abandon(isUnsent ? { kind: 'unsent' } : { kind: 'timeout', phase });
  }

  /** Ends the attempt while the provider may still be at work. */
  #abandon(outcome: AttemptOutcome): void {
    if (this.#over) return;
    this.#end(outcome);
    this.#handle?.cancel();
  }

  #end(outcome: AttemptOutcome): void {
    if (this.#over) return;
    this.#over = true;
    this.#deadline.clear();
    if (outcome.kind !== 'completed' && !this.#delivery.committed) this.#delivery.withdraw();
    this.#settle(outcome);
  }
}
