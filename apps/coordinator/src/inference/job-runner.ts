/**
 * Runs a job from the client's request to its verified answer. Before anything is committed, a provider's failure is another
 * provider's chance, a bounded number of times; what was not verified is never passed off as an answer.
 */
import { type ApiError, apiError, type SignedParts } from '@inference/formats';
import type { JobContext, ProviderId, Receipt } from '@inference/protocol';
import type { Fleet } from '../fleet/fleet.js';
import type { OnlineSession } from '../fleet/provider-session.js';
import type { Slot } from '../fleet/slot.js';
import { Attempt, type Outcome } from './attempt.js';
import { type CompletionProblem, checkCompletion } from './completion-check.js';
import type { Delivery } from './delivery.js';
import { type JobRequest, jobContext } from './job-request.js';
import { type Consequence, judgeFailure } from './outcome-verdict.js';
import { type JobTimings, MAX_ATTEMPTS } from './timings.js';
import type { SeatRefusal, WaitingRoom } from './waiting-room.js';

export interface JobRunnerOptions {
  readonly fleet: Fleet;
  readonly waitingRoom: WaitingRoom;
  readonly timings: JobTimings;
  readonly now: () => number;
}

/** How a job ended, for the log, the ledger and the statistics. */
export type JobEnd =
  | (Tried & { readonly kind: 'delivered'; readonly receipt: Receipt; readonly signed: SignedParts })
  | (Tried & { readonly kind: 'failed'; readonly error: ApiError; readonly reason: string; readonly problem?: CompletionProblem })
  | (Tried & { readonly kind: 'client_gone' });

interface Tried {
  readonly attempts: number;
  /** The provider tried last. */
  readonly session: OnlineSession | null;
}

type Step = { readonly done: JobEnd } | { readonly retry: JobEnd; readonly exclude: boolean };

export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #attempts = new Set<Attempt>();
  #running = 0;
  #stopping = false;
  readonly #idle: (() => void)[] = [];

  constructor(options: JobRunnerOptions) {
    this.#options = options;
  }

  /** Runs a job and answers its client through the delivery. `gone` is aborted when the client goes away. Never rejects for a provider's fault. */
  async run(job: JobRequest, delivery: Delivery, gone: AbortSignal): Promise<JobEnd> {
    this.#running++;
    try {
      const end = await this.#tryProviders(job, delivery, gone);
      if (end.kind === 'failed') delivery.fail(end.error);
      return end;
    } finally {
      this.#running--;
      if (this.#running === 0) for (const wake of this.#idle.splice(0)) wake();
    }
  }

  /** Resolves when no job is in the queue or on a provider. */
  whenIdle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Ends what runs, because the coordinator stops. Clients are told, in the stream when it has begun. */
  stop(): void {
    this.#stopping = true;
    for (const attempt of [...this.#attempts]) attempt.stop();
  }

  async #tryProviders(job: JobRequest, delivery: Delivery, gone: AbortSignal): Promise<JobEnd> {
    const { fleet, waitingRoom, timings, now } = this.#options;
    const { model, providerSerial } = job.facts;
    if (!fleet.serves(model)) return failed(0, null, apiError('model_not_found', { param: 'model' }), 'model_not_found');
    const deadline = now() + timings.overallMs;
    const exclude = new Set<ProviderId>();
    let last: JobEnd | null = null;
    for (let attempts = 1; ; attempts++) {
      const waitMs = Math.min(timings.queueMs, deadline - now());
      const seat = await waitingRoom.seat({ model, providerSerial, exclude }, waitMs, gone);
      if (seat.kind === 'refused') return this.#unseated(seat.reason, attempts - 1, last, gone);
      const step = await this.#tryOn(seat.slot, job, delivery, gone, attempts);
      if ('done' in step) return step.done;
      last = step.retry;
      if (step.exclude) exclude.add(seat.slot.session.registration.identity.providerId);
      if (attempts >= MAX_ATTEMPTS || delivery.committed || now() >= deadline) return last;
    }
  }

  async #tryOn(slot: Slot, job: JobRequest, delivery: Delivery, gone: AbortSignal, attempts: number): Promise<Step> {
    const { timings, now } = this.#options;
    const { session } = slot;
    const tried = { attempts, session };
    const context = gone.aborted || this.#stopping ? null : jobContext(job, session, now(), timings.contextMs);
    const key = session.key;
    if (context === null || key === null) {
      slot.release();
      if (gone.aborted) return { done: { kind: 'client_gone', ...tried } };
      if (this.#stopping) return { done: failed(attempts, session, apiError('shutting_down'), 'shutting_down') };
      return { retry: failed(attempts, session, apiError('no_provider'), 'key_expired'), exclude: true };
    }
    const attempt = new Attempt(delivery, timings);
    const stop = (): void => attempt.stop();
    gone.addEventListener('abort', stop);
    this.#attempts.add(attempt);
    attempt.start(slot, context, key.publicKey, job.body);
    const outcome = await attempt.outcome;
    gone.removeEventListener('abort', stop);
    this.#attempts.delete(attempt);
    return this.#conclude(outcome, context, delivery, gone, tried);
  }

  async #conclude(
    outcome: Outcome,
    context: JobContext,
    delivery: Delivery,
    gone: AbortSignal,
    tried: Tried & { session: OnlineSession },
  ): Promise<Step> {
    const { attempts, session } = tried;
    switch (outcome.kind) {
      case 'completed':
        return { done: await this.#verify(outcome, context, delivery, tried) };
      case 'stopped':
        if (gone.aborted) return { done: { kind: 'client_gone', ...tried } };
        return { done: failed(attempts, session, apiError('shutting_down'), 'shutting_down') };
      case 'failed':
      case 'lost':
      case 'timeout':
      case 'violated':
      case 'unsealable': {
        const verdict = judgeFailure(outcome);
        punish(session, verdict.consequence, verdict.reason);
        const end = failed(attempts, session, verdict.error, verdict.reason);
        const exclude = verdict.consequence !== 'hold_off' && verdict.consequence !== 'drain';
        return verdict.retry ? { retry: end, exclude } : { done: end };
      }
    }
  }

  async #verify(
    outcome: Outcome & { kind: 'completed' },
    context: JobContext,
    delivery: Delivery,
    { attempts, session }: Tried & { session: OnlineSession },
  ): Promise<JobEnd> {
    const { fleet, now } = this.#options;
    const { identity } = session.registration;
    const { finished, responseSha256, message } = outcome;
    const check = await checkCompletion(message, { context, provider: identity, finished, responseSha256, now: now() });
    if (!check.ok) {
      fleet.quarantine(identity.providerId, check.problem);
      return { ...failed(attempts, session, apiError('bad_signature'), 'bad_signature'), problem: check.problem };
    }
    session.failuresInARow = 0;
    session.requestsServed++;
    session.tokensGenerated += check.receipt.usage.completion_tokens;
    delivery.deliver(check.signed);
    return { kind: 'delivered', attempts, session, receipt: check.receipt, signed: check.signed };
  }

  #unseated(reason: SeatRefusal, attempts: number, last: JobEnd | null, gone: AbortSignal): JobEnd {
    const session = last?.session ?? null;
    switch (reason) {
      case 'aborted':
        if (gone.aborted) return { kind: 'client_gone', attempts, session };
        return failed(attempts, session, apiError('shutting_down'), 'shutting_down');
      case 'no_such_serial':
        return failed(attempts, session, apiError('provider_not_available', { param: 'provider_serial' }), reason);
      case 'queue_full':
        return failed(attempts, session, apiError('rate_limit_exceeded', { message: 'Too many requests wait for this model.' }), reason);
      case 'all_failed':
        return last ?? failed(attempts, session, apiError('provider_failed'), reason);
      case 'none_routable':
      case 'timeout':
        return last ?? failed(attempts, session, apiError('no_provider'), reason);
    }
  }
}

function failed(attempts: number, session: OnlineSession | null, error: ApiError, reason: string): JobEnd & { kind: 'failed' } {
  return { kind: 'failed', attempts, session, error, reason };
}

function punish(session: OnlineSession, consequence: Consequence, reason: string): void {
  switch (consequence) {
    case 'none':
      return;
    case 'hold_off':
      session.holdOff();
      return;
    case 'drain':
      session.drain();
      return;
    case 'failure':
      session.failuresInARow++;
      return;
    case 'misbehaved':
      session.failuresInARow++;
      session.reject('misbehaved', `the job's protocol was broken: ${reason}`);
  }
}
