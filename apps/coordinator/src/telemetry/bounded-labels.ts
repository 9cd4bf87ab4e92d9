/** Names that may become labels: the first so many, and one for all others, so that nobody can make figures without end. */

export const OTHER = 'other';

export class BoundedLabels {
  readonly #max: number;
  readonly #names = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  /** The name itself where it is one of the first, else {@link OTHER}. */
  name(name: string): string {
    if (this.#names.has(name)) return name;
    if (this.#names.size >= this.#max) return OTHER;
    this.#names.add(name);
    return name;
  }
}
