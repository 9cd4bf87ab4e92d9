/**
 * `LatencyTracker` computes when the first content of a job counts as late. `AttemptRunner` may then start a second, hedged attempt.
 *
 * `HedgeBudget` limits the number of hedged attempts.
 */
import type { LatencyEstimate } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';

/** Share of jobs whose first content should arrive in time. */
const ON_TIME_SHARE = 0.95;
/** Step size of the lateness factor on a logarithmic scale. Content is late after the factor times the expected time. */
const STEP = 0.2;
const MIN_FACTOR = 2;
const MAX_FACTOR = 100;
/** Minimum expected time until the first content, in milliseconds. Covers network round trips. */
const MIN_EXPECTED_MS = 100;
const MAX_MODELS = 10_000;
/** Maximum silence, as a multiple of the expected time to the first token. */
const SILENT_FACTOR = 4;

interface LatencyFloors {
  readonly lateMs: number;
  readonly silentMs: number;
}

/**
 * Estimates the 95th percentile of the ratio of actual to expected time until the first content, per model, for streams and other
 * responses. Content after this time is late.
 */
export class LatencyTracker {
  readonly #floors: LatencyFloors;
  /** Lateness factors. Key: `keyOf`. */
  readonly #factors = new BoundedMap<string, number>(MAX_MODELS);

  constructor(floors: LatencyFloors) {
    this.#floors = floors;
  }

  /** Milliseconds from sending a job until its first content is late. */
  lateAfterMs(model: string, streamed: boolean, estimate: LatencyEstimate): number {
    const factor = this.#factors.get(keyOf(model, streamed)) ?? MIN_FACTOR;
    return Math.max(this.#floors.lateMs, factor * expectedMs(streamed, estimate));
  }

  /** Milliseconds without activity after which a provider is abandoned if another one is idle. */
  silentAfterMs({ firstTokenMs }: LatencyEstimate): number {
    return Math.max(this.#floors.silentMs, SILENT_FACTOR * firstTokenMs);
  }

  /** Records the time until the first content. For an overtaken attempt without content, `ms` is its duration. */
  observe(model: string, streamed: boolean, estimate: LatencyEstimate, ms: number): void {
    const key = keyOf(model, streamed);
    const factor = this.#factors.get(key) ?? MIN_FACTOR;
    const isLate = ms > factor * expectedMs(streamed, estimate);
    // Quantile by stochastic approximation. The steps balance when 1 job in 20 is late.
    const adjusted = factor * Math.exp(STEP * (isLate ? ON_TIME_SHARE : ON_TIME_SHARE - 1));
    this.#factors.set(key, Math.min(MAX_FACTOR, Math.max(MIN_FACTOR, adjusted)));
  }
}

/** Expected time to the first content: the first token of a stream, or the whole of another response. */
function expectedMs(streamed: boolean, { firstTokenMs, completionMs }: LatencyEstimate): number {
  return Math.max(MIN_EXPECTED_MS, streamed ? firstTokenMs : completionMs);
}

function keyOf(model: string, streamed: boolean): string {
  return `${streamed ? 'stream' : 'whole'} ${model}`;
}

/** Maximum number of hedged attempts in one burst. */
const MAX_BURST = 3;

/** Limits hedged attempts to a share of the other attempts (token bucket algorithm), so that hedging cannot double the load. */
export class HedgeBudget {
  readonly #share: number;
  #availableAttempts: number;

  /** `percent` is relative to the attempts that are not hedged. 0 disables hedging. */
  constructor(percent: number) {
    this.#share = percent / 100;
    this.#availableAttempts = percent === 0 ? 0 : MAX_BURST;
  }

  /** Called for each attempt that is not hedged. */
  earn(): void {
    this.#availableAttempts = Math.min(MAX_BURST, this.#availableAttempts + this.#share);
  }

  get canSpend(): boolean {
    return this.#availableAttempts >= 1;
  }

  spend(): void {
    this.#availableAttempts--;
  }
}
