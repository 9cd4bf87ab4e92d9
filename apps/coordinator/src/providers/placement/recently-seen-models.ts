/**
 * `RecentlySeenModels` contains models of the catalogue and models served within the last day.
 *
 * A request for one of these models gets status 503 if no provider serves it now. Requests for other unserved models get 404.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { CapacityListener } from './model-directory.js';

/** A day, because some machines serve only at night. In milliseconds. */
export const RECENTLY_SEEN_MS = 24 * 3_600_000;
const MAX_MODELS = 10_000;

interface RecentlySeenModelsOptions {
  readonly registry: { serves(model: string): boolean; onCapacity(listener: CapacityListener): () => void };
  readonly catalogue: { readonly entries: ReadonlyMap<string, unknown> };
  /** Models of recent jobs from before this process started. They count as served at the start. */
  readonly earlier: Iterable<string>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export class RecentlySeenModels {
  readonly #options: RecentlySeenModelsOptions;
  /** Time at which each model was last served, most recent last. */
  readonly #servedAt = new BoundedMap<string, number>(MAX_MODELS);
  readonly #stopListening: () => void;

  constructor(options: RecentlySeenModelsOptions) {
    const { registry, earlier } = options;
    this.#options = options;
    for (const model of earlier) this.record(model);
    this.#stopListening = registry.onCapacity((models) => {
      for (const { id } of models) if (registry.serves(id)) this.record(id);
    });
  }

  has(model: string): boolean {
    const { catalogue, now } = this.#options;
    const servedAt = this.#servedAt.get(model);
    return catalogue.entries.has(model) || (servedAt !== undefined && now() - servedAt < RECENTLY_SEEN_MS);
  }

  /** Records that a provider of any coordinator serves the model now. */
  record(model: string): void {
    this.#servedAt.set(model, this.#options.now());
  }

  close(): void {
    this.#stopListening();
  }
}
