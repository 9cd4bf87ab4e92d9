/**
 * `AvailabilityController`: state machine `serving` → `leaving` → `away`, and back to `serving` from both.
 *
 * While leaving, finishes running jobs or hands them back to the coordinator, then unloads the models.
 */
import type { AvailabilityState } from '@inference/protocol';
import type { Availability, Reason } from './availability.js';

export interface CurrentAvailability {
  readonly state: AvailabilityState;
  /** Empty while serving. */
  readonly reasons: readonly Reason[];
  /** Time of the next change that is known in advance, in milliseconds since 1970. Null if unknown. */
  readonly nextChangeAt: number | null;
}

interface AvailabilityControllerOptions {
  readonly decide: () => Availability;
  /** Resolves when no job runs. `force` leaves the jobs less time. `cancel` ends the drain; the jobs continue. */
  readonly drain: (force: AbortSignal, cancel: AbortSignal) => Promise<void>;
  readonly unload: () => Promise<void>;
  readonly resume: () => void;
  /** Called when the state, the first reason or its end differ from those of the last call. */
  readonly onChange: (status: CurrentAvailability) => void;
  /** Bounds the effect of a changed system clock. */
  readonly maxReviewIntervalMs: number;
  readonly now: () => number;
}

export class AvailabilityController {
  readonly #options: AvailabilityControllerOptions;
  #state: AvailabilityState;
  #decision: Availability;
  #lastReported: string;
  #drain: { readonly force: AbortController; readonly cancel: AbortController } | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isClosed = false;

  /** Starts as `serving` or `away`, without a call of `onChange`. */
  constructor(options: AvailabilityControllerOptions) {
    this.#options = options;
    this.#decision = options.decide();
    this.#state = this.#decision.state === 'serve' ? 'serving' : 'away';
    this.#lastReported = this.#reportKey();
    this.#scheduleReview();
  }

  get status(): CurrentAvailability {
    const { reasons, nextChangeAt } = this.#decision;
    return { state: this.#state, reasons, nextChangeAt };
  }

  get state(): AvailabilityState {
    return this.#state;
  }

  /** Decides again. Call after every change of policy, pause or sensors. */
  review(): void {
    if (this.#isClosed) return;
    this.#decision = this.#options.decide();
    const serve = this.#decision.state === 'serve';
    if (serve && this.#state !== 'serving') this.#serve();
    else if (!serve && this.#state === 'serving') this.#leave();
    if (this.#decision.state === 'hand_back') this.#drain?.force.abort();
    this.#report();
    this.#scheduleReview();
  }

  /** A drain in progress continues. */
  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #serve(): void {
    this.#drain?.cancel.abort();
    this.#drain = null;
    this.#state = 'serving';
    this.#options.resume();
  }

  #leave(): void {
    const { drain, unload } = this.#options;
    const controllers = { force: new AbortController(), cancel: new AbortController() };
    this.#drain = controllers;
    this.#state = 'leaving';
    const cancelled = controllers.cancel.signal;
    // Reported before any job is refused or handed back, so that the coordinator knows the reason.
    this.#report();
    void (async () => {
      await drain(controllers.force.signal, cancelled);
      if (!cancelled.aborted) await unload();
      if (cancelled.aborted || this.#isClosed) return;
      this.#drain = null;
      this.#state = 'away';
      this.#report();
    })();
  }

  #report(): void {
    const key = this.#reportKey();
    if (key === this.#lastReported) return;
    this.#lastReported = key;
    this.#options.onChange(this.status);
  }

  #reportKey(): string {
    const [first] = this.#decision.reasons;
    return `${this.#state} ${first?.code} ${first?.until}`;
  }

  #scheduleReview(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    const { maxReviewIntervalMs, now } = this.#options;
    const { nextChangeAt } = this.#decision;
    const ms = nextChangeAt === null ? maxReviewIntervalMs : Math.min(maxReviewIntervalMs, Math.max(1, nextChangeAt - now()));
    this.#timer = setTimeout(() => this.review(), ms);
  }
}
