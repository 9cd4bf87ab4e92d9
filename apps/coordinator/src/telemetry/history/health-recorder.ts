/** `HealthRecorder` reads gauges several times a minute, and hands the figures of each ended minute to storage. */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { type HealthFigures, mergeFigures, NO_FIGURES } from './health-figures.js';
import type { JobCounts } from './job-counts.js';

/** One reading of the gauges of this coordinator. */
export type HealthReading = Pick<HealthFigures, 'sums' | 'providers' | 'ledger'>;

interface HealthRecorderOptions {
  readonly counts: Pick<JobCounts, 'sincePrevious'>;
  readonly read: () => HealthReading;
  /** Adds figures to the minute that begins at `at`, in milliseconds since 1970. */
  readonly store: (at: number, figures: HealthFigures) => Promise<unknown>;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
  readonly sampleMs?: number;
}

const MINUTE_MS = 60_000;
const SAMPLE_MS = 15_000;
const LAG_TIMER_MS = 1000;
/** Maximum of minutes in memory while the database does not answer; older ones are dropped. */
const MAX_UNSTORED_MINUTES = 120;

export class HealthRecorder {
  readonly #options: HealthRecorderOptions;
  readonly #sampleTimer: NodeJS.Timeout;
  readonly #lagTimer: NodeJS.Timeout;
  /** Figures by the start of their minute. */
  readonly #unstored = new BoundedMap<number, HealthFigures>(MAX_UNSTORED_MINUTES);
  #running: Promise<void> = Promise.resolve();
  #sampling: Promise<void> | null = null;
  #expectedAt = performance.now() + LAG_TIMER_MS;
  #maxLoopLagMs = 0;

  constructor(options: HealthRecorderOptions) {
    this.#options = options;
    this.#sampleTimer = setInterval(() => void this.sample(), options.sampleMs ?? SAMPLE_MS);
    this.#sampleTimer.unref();
    // A timer per second costs an idle process less than the histogram of the event loop.
    this.#lagTimer = setInterval(() => this.#measureLag(), LAG_TIMER_MS);
    this.#lagTimer.unref();
  }

  /** Reads the gauges, and stores the minutes that have ended. While a sample runs, another one is left out. Never rejects. */
  sample(): Promise<void> {
    this.#sampling ??= this.#next(async () => {
      await this.#add();
      const { now } = this.#options;
      await this.#store(now() - MINUTE_MS);
    }).finally(() => {
      this.#sampling = null;
    });
    return this.#sampling;
  }

  /** Stores the running minute too. Never rejects. */
  async close(): Promise<void> {
    clearInterval(this.#sampleTimer);
    clearInterval(this.#lagTimer);
    await this.#next(async () => {
      await this.#add();
      await this.#store(Number.POSITIVE_INFINITY);
    });
  }

  #next(work: () => Promise<void>): Promise<void> {
    this.#running = this.#running.then(work).catch(this.#options.onError);
    return this.#running;
  }

  async #add(): Promise<void> {
    const { counts, read, now } = this.#options;
    const gained = await counts.sincePrevious();
    const reading = read();
    const minute = Math.floor(now() / MINUTE_MS) * MINUTE_MS;
    const figures = { ...gained, ...reading, samples: 1, maxWaiting: reading.sums.waiting, maxLoopLagMs: this.#maxLoopLagMs };
    this.#maxLoopLagMs = 0;
    this.#unstored.set(minute, mergeFigures(this.#unstored.get(minute) ?? NO_FIGURES, figures));
  }

  /** Stores minutes that began at or before `latest`. A failed minute stays for the next call. */
  async #store(latest: number): Promise<void> {
    for (const [minute, figures] of [...this.#unstored]) {
      if (minute > latest) continue;
      await this.#options.store(minute, figures);
      this.#unstored.delete(minute);
    }
  }

  #measureLag(): void {
    const now = performance.now();
    this.#maxLoopLagMs = Math.max(this.#maxLoopLagMs, Math.round(now - this.#expectedAt));
    this.#expectedAt = now + LAG_TIMER_MS;
  }
}
