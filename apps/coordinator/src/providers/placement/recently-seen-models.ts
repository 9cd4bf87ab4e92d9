/**
 * Which models a client may expect although nobody serves them at the moment: those of the catalogue, and those that were served
 * within a day. Their machines sleep, restart or are held back, which passes (503); any other name is a mistake (404).
 */
import type { ModelOffer } from '@inference/protocol';
import { BoundedMap } from '../../limits/bounded-map.js';

/** A machine that serves at night is away by day. In milliseconds. */
export const RECENTLY_SEEN_MS = 24 * 3_600_000;
const MAX_MODELS = 10_000;

export interface RecentlySeenModelsOptions {
  readonly fleet: {
    serves(model: string): boolean;
    onCapacity(listener: (models: readonly ModelOffer[]) => void): () => void;
  };
  readonly catalogue: { readonly entries: ReadonlyMap<string, unknown> };
  /** Models of the newest jobs, from before this process began. */
  readonly earlier: Iterable<string>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export class RecentlySeenModels {
  readonly #options: RecentlySeenModelsOptions;
  /** When each was last served, the latest last. */
  readonly #servedAt = new BoundedMap<string, number>(MAX_MODELS);
  readonly #stopListening: () => void;

  constructor(options: RecentlySeenModelsOptions) {
    const { fleet, earlier } = options;
    this.#options = options;
    for (const model of earlier) this.#note(model);
    this.#stopListening = fleet.onCapacity((models) => {
      for (const { id } of models) if (fleet.serves(id)) this.#note(id);
    });
  }

  has(model: string): boolean {
    const { catalogue, now } = this.#options;
    const servedAt = this.#servedAt.get(model);
    return catalogue.entries.has(model) || (servedAt !== undefined && now() - servedAt < RECENTLY_SEEN_MS);
  }

  close(): void {
    this.#stopListening();
  }

  #note(model: string): void {
    this.#servedAt.set(model, this.#options.now());
  }
}
