/**
 * Whether this machine is serving, leaving or away. Goes from one to the other as the owner's wishes, the time and the machine have it:
 * it leaves by finishing or handing back what runs, frees the memory when nothing runs any more, and comes back where it stands.
 */
import type { AvailabilityState } from '@inference/protocol';
import type { Availability, Reason } from './availability.js';

export interface AttendanceStatus {
  readonly state: AvailabilityState;
  /** None while it serves. */
  readonly reasons: readonly Reason[];
  /** When only time would change it, in milliseconds since 1970; null: not known. */
  readonly nextChangeAt: number | null;
}

export interface AttendanceOptions {
  /** What holds now. */
  readonly decide: () => Availability;
  /** Resolves when nothing runs any more. When `hurry` is aborted, what can be handed back is; when `stay` is, nothing more is ended. */
  readonly leave: (hurry: AbortSignal, stay: AbortSignal) => Promise<void>;
  /** Frees the memory. */
  readonly rest: () => Promise<void>;
  /** It may take memory again. */
  readonly resume: () => void;
  /** State, first reason or its end are others than before. */
  readonly onChange: (status: AttendanceStatus) => void;
  /** Longest time between two looks, in milliseconds; the clock may be set at any moment. */
  readonly lookMs: number;
  readonly now: () => number;
}

export class Attendance {
  readonly #options: AttendanceOptions;
  #state: AvailabilityState;
  #decision: Availability;
  #told: string;
  #leaving: { readonly hurry: AbortController; readonly stay: AbortController } | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #closed = false;

  /** Nothing runs yet: it begins as serving or away, and `onChange` is not called for that. */
  constructor(options: AttendanceOptions) {
    this.#options = options;
    this.#decision = options.decide();
    this.#state = this.#decision.state === 'serve' ? 'serving' : 'away';
    this.#told = this.#word();
    this.#lookLater();
  }

  get status(): AttendanceStatus {
    const { reasons, nextChangeAt } = this.#decision;
    return { state: this.#state, reasons, nextChangeAt };
  }

  get state(): AvailabilityState {
    return this.#state;
  }

  /** Something may have changed. */
  review(): void {
    if (this.#closed) return;
    this.#decision = this.#options.decide();
    const serve = this.#decision.state === 'serve';
    if (serve && this.#state !== 'serving') this.#come();
    else if (!serve && this.#state === 'serving') this.#go();
    if (this.#decision.state === 'refuse') this.#leaving?.hurry.abort();
    this.#tell();
    this.#lookLater();
  }

  /** Looks no more. What is leaving goes on. */
  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #come(): void {
    this.#leaving?.stay.abort();
    this.#leaving = null;
    this.#state = 'serving';
    this.#options.resume();
  }

  #go(): void {
    const { leave, rest } = this.#options;
    const leaving = { hurry: new AbortController(), stay: new AbortController() };
    this.#leaving = leaving;
    this.#state = 'leaving';
    const stays = leaving.stay.signal;
    // Told before anything is refused or handed back, so that the coordinator knows why.
    this.#tell();
    void (async () => {
      await leave(leaving.hurry.signal, stays);
      if (!stays.aborted) await rest();
      if (stays.aborted || this.#closed) return;
      this.#leaving = null;
      this.#state = 'away';
      this.#tell();
    })();
  }

  #tell(): void {
    const word = this.#word();
    if (word === this.#told) return;
    this.#told = word;
    this.#options.onChange(this.status);
  }

  #word(): string {
    const [first] = this.#decision.reasons;
    return `${this.#state} ${first?.code} ${first?.until}`;
  }

  #lookLater(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    const { lookMs, now } = this.#options;
    const { nextChangeAt } = this.#decision;
    const ms = nextChangeAt === null ? lookMs : Math.min(lookMs, Math.max(1, nextChangeAt - now()));
    this.#timer = setTimeout(() => this.review(), ms);
  }
}
