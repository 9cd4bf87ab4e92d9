/** `HealthRecorder` samples the gauges and counters of this coordinator, and stores figures for each minute. */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { MINUTE_MS } from '../../time-units.js';
import { type HealthFigures, mergeFigures, NO_FIGURES } from './health-figures.js';
import type { JobCounts } from './job-counts.js';

/** A reading of this coordinator's gauges. */
export type HealthReading = Pick<HealthFigures, 'sums' | 'providers' | 'ledger'>;

interface HealthRecorderOptions {
  readonly counts: Pick<JobCounts, 'sincePrevious'>;
  readonly read: () => HealthReading;
  /** Stores figures of the minute that starts at `at`, in milliseconds since 1970. Adds them to figures stored earlier. */
  readonly store: (at: number, figures: HealthFigures) => Promise<unknown>;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

const SAMPLE_MS = 15_000;
const LAG_TIMER_MS = 1000;
/** Maximum minutes in memory while they cannot be stored. The oldest are dropped. */
const MAX_UNSTORED_MINUTES = 120;

export class HealthRecorder {
  readonly #options: HealthRecorderOptions;
  readonly #sampleTimer: NodeJS.Timeout;
  readonly #lagTimer: NodeJS.Timeout;
  /** Figures that are not stored yet, by the start of their minute. */
  readonly #unstored = new BoundedMap<number, HealthFigures>(MAX_UNSTORED_MINUTES);
  #running: Promise<void> = Promise.resolve();
  #sampling: Promise<void> | null = null;
  #expectedAt = performance.now() + LAG_TIMER_MS;
  #maxLoopLagMs = 0;

  constructor(options: HealthRecorderOptions) {
    this.#options = options;
    this.#sampleTimer = setInterval(() => void this.sample(), SAMPLE_MS);
    this.#sampleTimer.unref();
    // In an idle process, a timer per second costs less than `monitorEventLoopDelay` of Node.js.
    this.#lagTimer = setInterval(() => this.#measureLag(), LAG_TIMER_MS);
    this.#lagTimer.unref();
  }

  /** Takes a sample, and stores complete minutes. Concurrent callers share the running sample. Never rejects. */
  sample(): Promise<void> {
    this.#sampling ??= this.#sampleAndStore(() => this.#options.now() - MINUTE_MS).finally(() => {
      this.#sampling = null;
    });
    return this.#sampling;
  }

  /** Takes a last sample, and stores all minutes including the current one. Never rejects. */
  async close(): Promise<void> {
    clearInterval(this.#sampleTimer);
    clearInterval(this.#lagTimer);
    await this.#sampleAndStore(() => Number.POSITIVE_INFINITY);
  }

  /** Takes a sample, then stores minutes as {@link #store}, even if the sample failed. Never rejects. */
  #sampleAndStore(latest: () => number): Promise<void> {
    void this.#enqueue(() => this.#addSample());
    return this.#enqueue(() => this.#store(latest()));
  }

  /** Runs work after all earlier work. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#running = this.#running.then(work).catch(this.#options.onError);
    return this.#running;
  }

  async #addSample(): Promise<void> {
    const { counts, read, now } = this.#options;
    const reading = read();
    // Last, because the returned increases would be lost if a later step failed.
    const increases = await counts.sincePrevious();
    const minute = Math.floor(now() / MINUTE_MS) * MINUTE_MS;
    const figures = { ...increases, ...reading, samples: 1, maxWaiting: reading.sums.waiting, maxLoopLagMs: this.#maxLoopLagMs };
    this.#maxLoopLagMs = 0;
    this.#unstored.set(minute, mergeFigures(this.#unstored.get(minute) ?? NO_FIGURES, figures));
  }

  /** Stores minutes that started at or before `latest`. A minute that could not be stored stays for the next call. */
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
