/** `CostTable` stores the cost coefficients of provider groups in typed arrays, because every placement scans all of them. */
import { type CostModel, costCoefficients, type Work } from './job-cost.js';

const INITIAL_ROWS = 16;

export class CostTable {
  #fixedMs = new Float64Array(INITIAL_ROWS);
  #promptMs = new Float64Array(INITIAL_ROWS);
  #completionMs = new Float64Array(INITIAL_ROWS);

  set(row: number, costModel: CostModel): void {
    if (row >= this.#fixedMs.length) this.#grow();
    const { fixedMs, promptMs, completionMs } = costCoefficients(costModel);
    this.#fixedMs[row] = fixedMs;
    this.#promptMs[row] = promptMs;
    this.#completionMs[row] = completionMs;
  }

  /** Visits the first `rows` rows with a cost of at most `limit()` milliseconds. `visit` may lower the limit. */
  forEachUpTo(rows: number, work: Work, limit: () => number, visit: (row: number, costMs: number) => void): void {
    const { promptTokens, completionTokens } = work;
    const [fixed, prompt, completion] = [this.#fixedMs, this.#promptMs, this.#completionMs];
    let max = limit();
    for (let row = 0; row < rows; row++) {
      const costMs = (fixed[row] as number) + promptTokens * (prompt[row] as number) + completionTokens * (completion[row] as number);
      if (costMs > max) continue;
      visit(row, costMs);
      max = limit();
    }
  }

  #grow(): void {
    const capacity = this.#fixedMs.length * 2;
    this.#fixedMs = grown(this.#fixedMs, capacity);
    this.#promptMs = grown(this.#promptMs, capacity);
    this.#completionMs = grown(this.#completionMs, capacity);
  }
}

function grown(from: Float64Array<ArrayBuffer>, capacity: number): Float64Array<ArrayBuffer> {
  const to = new Float64Array(capacity);
  to.set(from);
  return to;
}
