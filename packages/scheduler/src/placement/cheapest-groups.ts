/** `CheapestGroups` collects the `max` provider groups of lowest cost, cheapest first. */
import type { OpenGroup } from '../pool/provider-groups.js';

export class CheapestGroups<S> {
  readonly groups: OpenGroup<S>[] = [];
  readonly #costs: number[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get bestMs(): number {
    return this.#costs[0] ?? Number.POSITIVE_INFINITY;
  }

  /** `add` ignores groups of this cost or more, in milliseconds. */
  get limitMs(): number {
    return this.#costs[this.#max - 1] ?? Number.POSITIVE_INFINITY;
  }

  add(group: OpenGroup<S>, costMs: number): void {
    if (costMs >= this.limitMs) return;
    let place = this.#costs.length;
    while (place > 0 && (this.#costs[place - 1] as number) > costMs) place--;
    this.#costs.splice(place, 0, costMs);
    this.groups.splice(place, 0, group);
    if (this.groups.length > this.#max) {
      this.#costs.pop();
      this.groups.pop();
    }
  }
}
