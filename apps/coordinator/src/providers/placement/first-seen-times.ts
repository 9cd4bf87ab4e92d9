/** `FirstSeenTimes` stores when this process first saw each model, in milliseconds since 1970. */

/** Beyond this number, models that no provider offers are dropped. */
const MAX_MODELS = 10_000;

export class FirstSeenTimes {
  readonly #isOffered: (model: string) => boolean;
  readonly #at = new Map<string, number>();
  #max = MAX_MODELS;

  constructor(isOffered: (model: string) => boolean) {
    this.#isOffered = isOffered;
  }

  get size(): number {
    return this.#at.size;
  }

  record(model: string, now: number): void {
    if (this.#at.has(model)) return;
    this.#at.set(model, now);
    if (this.#at.size > this.#max) this.#forget();
  }

  at(model: string): number | null {
    return this.#at.get(model) ?? null;
  }

  /** Drops models that no provider offers. If many remain, the limit grows to twice their number, so that this rarely runs. */
  #forget(): void {
    for (const model of this.#at.keys()) if (!this.#isOffered(model)) this.#at.delete(model);
    this.#max = Math.max(MAX_MODELS, 2 * this.#at.size);
  }
}
