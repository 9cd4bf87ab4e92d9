/** `LatencyTracker` decides when a second attempt may start, per model. `HedgeBudget` limits all second attempts. */
import type { LatencyEstimate } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';

/** Share of jobs whose first content counts as on time. */
const ON_TIME_SHARE = 0.95;
/** Relative change of the factor per job. */
const STEP = 0.2;
const MIN_FACTOR = 2;
const MAX_FACTOR = 100;
/** Minimum estimate, in milliseconds, for network round trips. */
const MIN_EXPECTED_MS = 100;
const MAX_MODELS = 10_000;
/** Silence is limited by a multiple of the expected prefill time: later phases show activity. */
const SILENT_FACTOR = 4;

interface LatencyFloors {
  readonly lateMs: number;
  readonly silentMs: number;
}

/** Learns per model when first content is late: beyond the 95th percentile of the ratio of actual to estimated time. */
export class LatencyTracker {
  readonly #floors: LatencyFloors;
  readonly #factors = new BoundedMap<string, number>(MAX_MODELS);

  constructor(floors: LatencyFloors) {
    this.#floors = floors;
  }

  /** Milliseconds from sending a job until its first content is late. */
  lateAfterMs(model: string, streamed: boolean, estimate: LatencyEstimate): number {
    const factor = this.#factors.get(keyOf(model, streamed)) ?? MIN_FACTOR;
    return Math.max(this.#floors.lateMs, factor * expectedMs(streamed, estimate));
  }

  /** Milliseconds without activity after which a provider is abandoned if another is free. */
  silentAfterMs({ firstTokenMs }: LatencyEstimate): number {
    return Math.max(this.#floors.silentMs, SILENT_FACTOR * firstTokenMs);
  }

  /** Records the time until the first content, or the waiting time so far without content. */
  observe(model: string, streamed: boolean, estimate: LatencyEstimate, ms: number): void {
    const key = keyOf(model, streamed);
    const factor = this.#factors.get(key) ?? MIN_FACTOR;
    const isLate = ms > factor * expectedMs(streamed, estimate);
    // Quantile by stochastic approximation, on a logarithmic scale: the steps balance where 1 in 20 is late.
    const adjusted = factor * Math.exp(STEP * (isLate ? ON_TIME_SHARE : ON_TIME_SHARE - 1));
    this.#factors.set(key, Math.min(MAX_FACTOR, Math.max(MIN_FACTOR, adjusted)));
  }
}

/** A plain response comes as a whole, a stream with its first token. */
function expectedMs(streamed: boolean, { firstTokenMs, completionMs }: LatencyEstimate): number {
  return Math.max(MIN_EXPECTED_MS, streamed ? firstTokenMs : completionMs);
}

function keyOf(model: string, streamed: boolean): string {
  return `${streamed ? 'stream' : 'plain'} ${model}`;
}

/** Maximum second attempts started together after a quiet time. */
const MAX_BURST = 3;

/** Limits second attempts to a share of the placements: hedging cannot double the load of an overloaded network. */
export class HedgeBudget {
  readonly #share: number;
  #left: number;

  /** `percent` of the placements; 0 disables hedging. */
  constructor(percent: number) {
    this.#share = percent / 100;
    this.#left = percent === 0 ? 0 : MAX_BURST;
  }

  /** A job was placed. */
  placed(): void {
    this.#left = Math.min(MAX_BURST, this.#left + this.#share);
  }

  get available(): boolean {
    return this.#left >= 1;
  }

  spend(): void {
    this.#left--;
  }
}
