/**
 * When a job's first content is late. Estimates are right only so far, and some models are slower than their estimates as a
 * rule; so it is late when it takes longer than all but one in twenty of that model did, measured against their estimates.
 */

import type { LatencyEstimate } from '@inference/scheduler';
import { BoundedMap } from '../../limits/bounded-map.js';

/** Part of the jobs that are to be on time. */
const ON_TIME = 0.95;
/** How far one job moves the bound, as a part of it. */
const STEP = 0.2;
const MIN_FACTOR = 2;
const MAX_FACTOR = 100;
/** Shorter estimates are taken for this, in milliseconds: what is left is the way there and back. */
const MIN_EXPECTED_MS = 100;
const MAX_MODELS = 10_000;
/** Silence is measured against the time for the prompt: what comes after it gives signs of life. */
const SILENT_FACTOR = 4;

export interface LatencyFloors {
  readonly lateMs: number;
  readonly silentMs: number;
}

export class LatencyTracker {
  readonly #floors: LatencyFloors;
  readonly #factors = new BoundedMap<string, number>(MAX_MODELS);

  constructor(floors: LatencyFloors) {
    this.#floors = floors;
  }

  /** Milliseconds from the sending of a job after which its first content is late. */
  lateAfterMs(model: string, streamed: boolean, estimate: LatencyEstimate): number {
    const factor = this.#factors.get(keyOf(model, streamed)) ?? MIN_FACTOR;
    return Math.max(this.#floors.lateMs, factor * expectedMs(streamed, estimate));
  }

  /** Milliseconds without a sign of life after which a machine is not waited for when there is another. */
  silentAfterMs({ firstTokenMs }: LatencyEstimate): number {
    return Math.max(this.#floors.silentMs, SILENT_FACTOR * firstTokenMs);
  }

  /** First content came after `ms`, or had not come by then. */
  observe(model: string, streamed: boolean, estimate: LatencyEstimate, ms: number): void {
    const key = keyOf(model, streamed);
    const factor = this.#factors.get(key) ?? MIN_FACTOR;
    const later = ms > factor * expectedMs(streamed, estimate);
    // The steps are in balance where one in twenty is later (a quantile by stochastic approximation, on a logarithmic scale).
    const moved = factor * Math.exp(STEP * (later ? ON_TIME : ON_TIME - 1));
    this.#factors.set(key, Math.min(MAX_FACTOR, Math.max(MIN_FACTOR, moved)));
  }
}

/** A plain answer comes as a whole, and a stream with its first token. */
function expectedMs(streamed: boolean, { firstTokenMs, completionMs }: LatencyEstimate): number {
  return Math.max(MIN_EXPECTED_MS, streamed ? firstTokenMs : completionMs);
}

function keyOf(model: string, streamed: boolean): string {
  return `${streamed ? 'stream' : 'plain'} ${model}`;
}
