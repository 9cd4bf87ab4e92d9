/**
 * `HedgedRequest` runs an attempt of a job, and a second one beside it if the first is late. The first attempt with content wins.
 *
 * `AttemptRunner` creates one per retry, reads events from `next`, and reacts with `start` or `abandon`.
 */
import { Deadline } from '../deadline.js';
import type { Delivery } from '../delivery/delivery.js';
import type { JobTimings } from '../job-timings.js';
import { Attempt, type AttemptGroup, type AttemptOutcome, type AttemptPlan } from './attempt.js';

export interface EndedAttempt {
  readonly plan: AttemptPlan;
  readonly outcome: AttemptOutcome;
  readonly elapsedMs: number;
}

type HedgingEvent =
  /** No content has arrived in time. */
  | {
      readonly kind: 'overdue';
      readonly running: readonly AttemptPlan[];
      /** The only running attempt, if its provider shows no activity. */
      readonly silent: AttemptPlan | null;
      /** Whether a second attempt may start. */
      readonly isLate: boolean;
    }
  /** An attempt ended without deciding the job. */
  | ({ readonly kind: 'ended' } & EndedAttempt)
  /** The winner's outcome, or the last outcome if no attempt won. No event follows. */
  | ({ readonly kind: 'decided' } & EndedAttempt);

/** Maximum delay of a Node.js timer, in milliseconds. A longer delay fires immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class HedgedRequest implements AttemptGroup {
  readonly #delivery: Delivery;
  readonly #body: Uint8Array;
  readonly #timings: JobTimings;
  #running: Attempt[] = [];
  /** Attempt whose provider the response headers name. */
  #deliveringAttempt: Attempt | null = null;
  #winner: Attempt | null = null;
  #isHedged = false;
  /** Outcome of the deciding attempt. Reported once no attempt is running. */
  #decided: (HedgingEvent & { readonly kind: 'decided' }) | null = null;
  readonly #nextCheck = new Deadline(() => this.#check());
  #commitTimer: NodeJS.Timeout | null = null;
  readonly #events: HedgingEvent[] = [];
  #onEvent: (() => void) | null = null;

  constructor(delivery: Delivery, body: Uint8Array, timings: JobTimings) {
    this.#delivery = delivery;
    this.#body = body;
    this.#timings = timings;
  }

  /** Starts an attempt. If that throws, stops all attempts. If an attempt has already won, only releases the slot. */
  start(plan: AttemptPlan): void {
    if (this.#winner !== null || this.#decided !== null) {
      plan.slot.release();
      return;
    }
    const attempt = new Attempt(plan, this, this.#timings);
    if (this.#running.length > 0) {
      this.#isHedged = true;
      // The second attempt gets as much time until the headers are sent as the first had.
      if (this.#commitTimer !== null) this.#commitIn(this.#timings.commitMs);
    }
    this.#running.push(attempt);
    try {
      attempt.start(this.#body);
    } catch (error) {
      this.#clearTimers();
      this.stop();
      throw error;
    }
    void attempt.outcome.then((outcome) => this.#ended(attempt, outcome));
    this.#scheduleCheck();
  }

  /** Resolves to the next event. Events wait until they are read. */
  async next(): Promise<HedgingEvent> {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) return event;
      await new Promise<void>((resolve) => {
        this.#onEvent = resolve;
      });
    }
  }

  /** Abandons a silent attempt before its timeout. Does nothing once content of the attempt has arrived. */
  abandon(plan: AttemptPlan): void {
    this.#running.find((attempt) => attempt.plan === plan)?.abandonSilent();
  }

  stop(): void {
    for (const attempt of [...this.#running]) attempt.stop();
  }

  /** Handles a disconnect of the client; see {@link Attempt.recall}. */
  recall(): void {
    for (const attempt of [...this.#running]) attempt.recall();
  }

  deliveryOf(attempt: Attempt): Delivery | null {
    return this.#deliveringAttempt === attempt ? this.#delivery : null;
  }

  started(attempt: Attempt): void {
    if (this.#deliveringAttempt === null) this.#bindDelivery(attempt);
  }

  /** Starts the timer that sends a stream's headers `commitMs` after the first acceptance. A second attempt restarts it. */
  accepted(): void {
    if (this.#winner === null && this.#commitTimer === null) this.#commitIn(this.#timings.commitMs);
  }

  write(attempt: Attempt, bytes: Uint8Array, receivedAt: number): boolean {
    if (bytes.length === 0) return true;
    if (this.#winner === null) this.#declareWinner(attempt);
    return this.#winner === attempt ? this.#delivery.push(bytes, receivedAt) : true;
  }

  #ended(attempt: Attempt, outcome: AttemptOutcome): void {
    const ended = { plan: attempt.plan, outcome, elapsedMs: attempt.elapsedMs };
    this.#running = this.#running.filter((other) => other !== attempt);
    if (outcome.kind === 'completed' && this.#winner === null && this.#decided === null) this.#declareWinner(attempt);
    const isDecisive = this.#decided === null && outcome.kind !== 'overtaken' && (this.#winner === attempt || this.#running.length === 0);
    if (isDecisive) {
      this.#decided = { kind: 'decided', ...ended };
      this.#clearTimers();
      for (const other of this.#running) other.overtake();
    } else {
      this.#report({ kind: 'ended', ...ended });
      const [other] = this.#running;
      if (this.#deliveringAttempt === attempt && other !== undefined) this.#bindDelivery(other);
      this.#scheduleCheck();
    }
    if (this.#decided !== null && this.#running.length === 0) this.#report(this.#decided);
  }

  #report(event: HedgingEvent): void {
    this.#events.push(event);
    this.#onEvent?.();
    this.#onEvent = null;
  }

  /** Makes the response headers name the attempt's provider. */
  #bindDelivery(attempt: Attempt): void {
    if (this.#deliveringAttempt !== null) this.#delivery.withdraw();
    this.#deliveringAttempt = attempt;
    const { slot, route } = attempt.plan;
    this.#delivery.begin(slot.provider, (bytes) => attempt.drained(bytes), route);
  }

  #declareWinner(attempt: Attempt): void {
    this.#winner = attempt;
    this.#clearTimers();
    if (this.#deliveringAttempt !== attempt) this.#bindDelivery(attempt);
    for (const other of this.#running) if (other !== attempt) other.overtake();
  }

  #commitIn(ms: number): void {
    if (this.#commitTimer !== null) clearTimeout(this.#commitTimer);
    this.#commitTimer = setTimeout(() => this.#commit(), ms);
  }

  /** Sends a stream's headers without content. Headers name one provider, so the most recently active accepted attempt wins. */
  #commit(): void {
    this.#commitTimer = null;
    const [first, second] = this.#running.filter(({ isAccepted }) => isAccepted);
    if (first === undefined) return;
    const attempt = second !== undefined && second.silentMs < first.silentMs ? second : first;
    if (!attempt.plan.context.stream) return;
    this.#declareWinner(attempt);
    this.#delivery.commit();
  }

  /** Sets the timer for the next moment at which an attempt becomes silent or late. */
  #scheduleCheck(): void {
    this.#nextCheck.clear();
    if (this.#decided !== null || this.#winner !== null) return;
    const waits = this.#running.map(({ plan, silentMs }) => plan.silentAfterMs - silentMs);
    const [only] = this.#running;
    if (only !== undefined && !this.#isHedged) waits.push(only.plan.lateAfterMs - only.elapsedMs);
    if (waits.length === 0) return;
    // Thresholds that have passed are reported again every `lateMs`.
    const nextMs = Math.min(...waits.map((wait) => (wait > 0 ? wait : this.#timings.lateMs)));
    this.#nextCheck.set(Math.min(Math.ceil(nextMs), MAX_TIMER_MS));
  }

  /** Abandons the silent one of two attempts, or reports that the only attempt is silent or late. */
  #check(): void {
    const silent = this.#running.find(({ plan, silentMs }) => silentMs >= plan.silentAfterMs) ?? null;
    const [only, other] = this.#running;
    if (only === undefined) return;
    if (silent !== null && other !== undefined) {
      silent.abandonSilent();
      return;
    }
    const isLate = other === undefined && !this.#isHedged && only.elapsedMs >= only.plan.lateAfterMs;
    if (silent !== null || isLate) {
      this.#report({ kind: 'overdue', running: this.#running.map(({ plan }) => plan), silent: silent?.plan ?? null, isLate });
    }
    this.#scheduleCheck();
  }

  #clearTimers(): void {
    this.#nextCheck.clear();
    if (this.#commitTimer !== null) clearTimeout(this.#commitTimer);
    this.#commitTimer = null;
  }
}
