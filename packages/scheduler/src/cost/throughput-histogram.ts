/** `ThroughputHistogram` counts a model's providers by rate step, to compute quantiles of the rates without sorting. */
import { MAX_STEPS, rateOfStep, rateStep, type ThroughputEstimate } from './job-cost.js';

/** Rate steps at which one provider is counted. */
export interface CountedThroughput {
  readonly prefillStep: number;
  readonly decodeStep: number;
}

/** Quantile that {@link ThroughputHistogram.quantile} computes. */
const QUANTILE = 0.9;

export class ThroughputHistogram {
  readonly #prefill = new Uint32Array(MAX_STEPS + 1);
  readonly #decode = new Uint32Array(MAX_STEPS + 1);
  #count = 0;

  add(speed: ThroughputEstimate): CountedThroughput {
    const counted = { prefillStep: rateStep(speed.prefillTps), decodeStep: rateStep(speed.decodeTps) };
    this.#change(counted, 1);
    return counted;
  }

  remove(counted: CountedThroughput): void {
    this.#change(counted, -1);
  }

  /** The 90th percentile of each rate, rounded to a rate step; null when nothing is counted. */
  quantile(): Pick<ThroughputEstimate, 'prefillTps' | 'decodeTps'> | null {
    if (this.#count === 0) return null;
    return { prefillTps: rateOfStep(this.#quantileStep(this.#prefill)), decodeTps: rateOfStep(this.#quantileStep(this.#decode)) };
  }

  #quantileStep(counts: Uint32Array): number {
    let below = 0;
    for (let step = 0; step <= MAX_STEPS; step++) {
      below += counts[step] as number;
      if (below >= QUANTILE * this.#count) return step;
    }
    return MAX_STEPS;
  }

  #change({ prefillStep, decodeStep }: CountedThroughput, by: 1 | -1): void {
    this.#prefill[prefillStep] = (this.#prefill[prefillStep] as number) + by;
    this.#decode[decodeStep] = (this.#decode[decodeStep] as number) + by;
    this.#count += by;
  }
}
