/** How many second attempts there may be: a share of the placements, so that no trouble of the fleet can double its load. */

/** Second attempts that may come together after a quiet time. */
const BURST = 3;

export class HedgeBudget {
  readonly #share: number;
  #left: number;

  /** `percent` of the placements; 0: none ever. */
  constructor(percent: number) {
    this.#share = percent / 100;
    this.#left = percent === 0 ? 0 : BURST;
  }

  /** A job got its place. */
  placed(): void {
    this.#left = Math.min(BURST, this.#left + this.#share);
  }

  get available(): boolean {
    return this.#left >= 1;
  }

  spend(): void {
    this.#left--;
  }
}
