/**
 * The attempts at one job that run at the same time: one, and beside it a second one on an idle machine when the first content
 * is late. Nothing is written before one of them brings content; that one has won, and the other is stopped in the same turn.
 */

import type { LatencyEstimate } from '@inference/scheduler';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import { Deadline } from '../deadline.js';
import type { Delivery } from '../delivery/delivery.js';
import type { JobTimings } from '../job-timings.js';
import { Attempt, type AttemptKeys, type AttemptOutcome, type Outlet } from './attempt.js';
import { StallBudget } from './stall-budget.js';

/** What an attempt is made with. */
export interface AttemptPlan extends AttemptKeys {
  readonly estimate: LatencyEstimate;
  /** What a token of the answer is expected to take there, in milliseconds. */
  readonly tokenMs: number;
  /** Jobs that the provider had beside this one when it began. */
  readonly otherJobs: number;
  readonly role: 'first' | 'retry' | 'hedge';
}

export interface HedgingRules {
  readonly timings: JobTimings;
  readonly body: Uint8Array;
  /** After this time without content a second attempt may begin, in milliseconds. */
  lateAfterMs(plan: AttemptPlan): number;
  /** After this time without a sign of life a machine may be left, in milliseconds. */
  silentAfterMs(plan: AttemptPlan): number;
  /** A place for a second attempt beside those that run, taken; null when there may be none now. */
  second(running: readonly AttemptPlan[]): AttemptPlan | null;
  /** Whether another machine could have the job at once. */
  couldMove(running: readonly AttemptPlan[]): boolean;
  /** An attempt has ended that did not decide the job. */
  ended(plan: AttemptPlan, outcome: AttemptOutcome, elapsedMs: number): void;
}

/** How the race ended: the outcome that decides it, or the last of those that do not. */
export interface Finish {
  readonly plan: AttemptPlan;
  readonly outcome: AttemptOutcome;
  readonly elapsedMs: number;
}

/** A timer of more than this would fire at once, and again and again. Milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class HedgedRequest {
  readonly #delivery: Delivery;
  readonly #rules: HedgingRules;
  #running: Lane[] = [];
  /** Whose provider the delivery names. */
  #holder: Lane | null = null;
  #winner: Lane | null = null;
  #hedged = false;
  #over = false;
  readonly #nextLook = new Deadline(() => this.#look());
  #commitTimer: NodeJS.Timeout | null = null;
  readonly finish: Promise<Finish>;
  #resolve: (finish: Finish) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(delivery: Delivery, rules: HedgingRules) {
    this.#delivery = delivery;
    this.#rules = rules;
    this.finish = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Begins an attempt. */
  enter(plan: AttemptPlan): void {
    const { timings, body } = this.#rules;
    const lane = new Lane(this.#delivery, this, plan, timings);
    this.#running.push(lane);
    try {
      lane.attempt.start(plan, body);
    } catch (error) {
      this.#end();
      for (const other of this.#running) other.attempt.stop();
      this.#reject(error);
      return;
    }
    void lane.attempt.outcome.then((outcome) => this.#ended(lane, outcome));
    this.#plan();
  }

  /** Ends all of it from this side. */
  stop(): void {
    for (const { attempt } of [...this.#running]) attempt.stop();
  }

  /** The client has gone; see {@link Attempt.recall}. */
  recall(): void {
    for (const { attempt } of [...this.#running]) attempt.recall();
  }

  holds(lane: Lane): boolean {
    return this.#holder === lane;
  }

  /** The delivery names this lane's provider, unless it names another already. */
  began(lane: Lane): void {
    if (this.#holder === null) this.#hold(lane);
  }

  /** A stream's headers go out some time after a provider took the job, and name one. */
  accepted(): void {
    if (this.#winner === null && this.#commitTimer === null) this.#commitIn(this.#rules.timings.commitMs);
  }

  /** Content has come. Whether this lane may write it. */
  claims(lane: Lane): boolean {
    if (this.#winner === null) this.#award(lane);
    return this.#winner === lane;
  }

  get #plans(): readonly AttemptPlan[] {
    return this.#running.map(({ plan }) => plan);
  }

  #ended(lane: Lane, outcome: AttemptOutcome): void {
    const { plan, attempt } = lane;
    const { elapsedMs } = attempt;
    this.#running = this.#running.filter((other) => other !== lane);
    if (outcome.kind === 'completed' && this.#winner === null && !this.#over) this.#award(lane);
    const isLast = this.#running.length === 0;
    if (this.#over || outcome.kind === 'overtaken' || !(this.#winner === lane || isLast)) {
      this.#rules.ended(plan, outcome, elapsedMs);
      const [other] = this.#running;
      if (this.#holder === lane && other !== undefined) this.#hold(other);
      if (!this.#over) this.#plan();
      return;
    }
    this.#end();
    for (const other of this.#running) other.attempt.overtake();
    this.#resolve({ plan, outcome, elapsedMs });
  }

  #hold(lane: Lane): void {
    if (this.#holder !== null) this.#delivery.withdraw();
    this.#holder = lane;
    this.#delivery.begin(lane.plan.slot.provider, lane.grant);
  }

  #award(lane: Lane): void {
    this.#winner = lane;
    this.#clearTimers();
    if (this.#holder !== lane) this.#hold(lane);
    for (const other of this.#running) if (other !== lane) other.attempt.overtake();
  }

  #commitIn(ms: number): void {
    if (this.#commitTimer !== null) clearTimeout(this.#commitTimer);
    this.#commitTimer = setTimeout(() => this.#commitDue(), ms);
  }

  /** The headers name one provider, so that the race is over; it goes on with the one that was heard of last. */
  #commitDue(): void {
    this.#commitTimer = null;
    const [first, second] = this.#running.filter(({ isAccepted }) => isAccepted);
    if (first === undefined) return;
    const lane = second !== undefined && second.attempt.silentMs < first.attempt.silentMs ? second : first;
    if (!lane.plan.context.stream) return;
    this.#award(lane);
    this.#delivery.commit();
  }

  /** Sets the timer for the next look. */
  #plan(): void {
    this.#nextLook.clear();
    if (this.#over || this.#winner !== null) return;
    const waits = this.#running.map(({ plan, attempt }) => this.#rules.silentAfterMs(plan) - attempt.silentMs);
    const [only] = this.#running;
    if (only !== undefined && !this.#hedged) waits.push(this.#rules.lateAfterMs(only.plan) - only.attempt.elapsedMs);
    if (waits.length === 0) return;
    const soonest = Math.min(...waits.map((wait) => (wait > 0 ? wait : this.#rules.timings.lateMs)));
    this.#nextLook.set(Math.min(Math.ceil(soonest), MAX_TIMER_MS));
  }

  #look(): void {
    const silent = this.#running.find(({ plan, attempt }) => attempt.silentMs >= this.#rules.silentAfterMs(plan));
    if (silent !== undefined && (this.#running.length > 1 || this.#rules.couldMove(this.#plans))) {
      silent.attempt.leave();
      return;
    }
    const [only] = this.#running;
    if (only !== undefined && !this.#hedged && only.attempt.elapsedMs >= this.#rules.lateAfterMs(only.plan)) {
      const second = this.#rules.second(this.#plans);
      if (second !== null) {
        this.#hedged = true;
        // The second one gets as much time as the first one had.
        if (this.#commitTimer !== null) this.#commitIn(this.#rules.timings.commitMs);
        this.enter(second);
        return;
      }
    }
    this.#plan();
  }

  #end(): void {
    this.#over = true;
    this.#clearTimers();
  }

  #clearTimers(): void {
    this.#nextLook.clear();
    if (this.#commitTimer !== null) clearTimeout(this.#commitTimer);
    this.#commitTimer = null;
  }
}

/** One attempt's way to the delivery, open from its first content on, if that is the first of all. */
class Lane implements Outlet {
  readonly plan: AttemptPlan;
  readonly attempt: Attempt;
  readonly #delivery: Delivery;
  readonly #race: HedgedRequest;
  isAccepted = false;
  grant: (bytes: number) => void = () => {};

  constructor(delivery: Delivery, race: HedgedRequest, plan: AttemptPlan, timings: JobTimings) {
    this.#delivery = delivery;
    this.#race = race;
    this.plan = plan;
    const { tokenMs, context } = plan;
    this.attempt = new Attempt(this, timings, new StallBudget({ maxMs: timings.stallMs, tokenMs, maxTokens: context.max_tokens }));
  }

  get committed(): boolean {
    return this.#race.holds(this) && this.#delivery.committed;
  }

  get stalled(): boolean {
    return this.#race.holds(this) && this.#delivery.stalled;
  }

  get delivered(): number {
    return this.#race.holds(this) ? this.#delivery.delivered : 0;
  }

  begin(_provider: ProviderConnection, grant: (bytes: number) => void): void {
    this.grant = grant;
    this.#race.began(this);
  }

  accepted(): void {
    this.isAccepted = true;
    this.#race.accepted();
  }

  push(bytes: Uint8Array, cameAt: number): boolean {
    if (bytes.length === 0) return true;
    return this.#race.claims(this) ? this.#delivery.push(bytes, cameAt) : true;
  }

  withdraw(): void {
    if (this.#race.holds(this)) this.#delivery.withdraw();
  }
}
