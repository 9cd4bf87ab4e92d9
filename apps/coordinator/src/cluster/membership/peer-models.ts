/**
 * `PeerModels`: the models of one peer, from its heartbeats and from its replies with all models.
 *
 * A heartbeat and a reply may arrive in another order than they were sent. Their sequence numbers show which describes a model last.
 */
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { Heartbeat, PublishedModel } from './heartbeat.js';

type Entry = Heartbeat['models'][number];
/** Facts about a model in a heartbeat, besides its digest. */
export type ModelFacts = Pick<PublishedModel, 'type' | 'images' | 'vision'>;

/** Limits the memory that a hostile peer can occupy. */
export const MAX_MODELS_PER_PEER = 20_000;

export class PeerModels {
  readonly #models = new Map<string, ModelFacts>();
  /** Sequence of the newest reply with all models. */
  #allModelsSequence = 0;
  /** Sequence of the last heartbeat with the model, by model id. Without heartbeats before the newest reply with all models. */
  readonly #changeSequences = new BoundedMap<string, number>(MAX_MODELS_PER_PEER);

  get size(): number {
    return this.#models.size;
  }

  get(id: string): ModelFacts | undefined {
    return this.#models.get(id);
  }

  ids(): Iterable<string> {
    return this.#models.keys();
  }

  /** Sequence of the newest message that reported the model, or its absence. */
  changedAt(id: string): number {
    return Math.max(this.#changeSequences.get(id) ?? 0, this.#allModelsSequence);
  }

  /** Stores the changed models of a heartbeat. Returns the stored entries; none if a reply with all models is as new as the heartbeat. */
  storeChanges({ sequence, models }: Heartbeat): Entry[] {
    if (sequence <= this.#allModelsSequence) return [];
    for (const { id } of models) this.#changeSequences.set(id, sequence);
    return this.#store(models);
  }

  /**
   * Replaces all models by those of a reply, except models that a later heartbeat has changed.
   *
   * @returns Stored entries, including those of removed models. None if a later reply is known.
   */
  storeAll({ sequence, models }: Heartbeat): Entry[] {
    if (sequence < this.#allModelsSequence) return [];
    this.#allModelsSequence = sequence;
    for (const [id, changeSequence] of this.#changeSequences) if (changeSequence <= sequence) this.#changeSequences.delete(id);
    const served = new Set(models.map(({ id }) => id));
    const removed = [...this.#models.keys()].filter((id) => !served.has(id)).map(removedModel);
    return this.#store([...models, ...removed].filter(({ id }) => !this.#changeSequences.has(id)));
  }

  /** Removes all models. Returns an entry per removed model. */
  clear(): Entry[] {
    const removed = [...this.#models.keys()].map(removedModel);
    this.#models.clear();
    return removed;
  }

  #store(models: readonly Entry[]): Entry[] {
    return models.map((entry) => {
      const { id, type, images, vision = null, digest } = entry;
      if (digest === null || (!this.#models.has(id) && this.#models.size >= MAX_MODELS_PER_PEER)) {
        this.#models.delete(id);
        return removedModel(id);
      }
      this.#models.set(id, { type, images, vision });
      return entry;
    });
  }
}

/** Entry that reports a model's removal. `type` and `images` are unused. */
export function removedModel(id: string): Entry {
  return { id, type: 'text', digest: null, images: [] };
}
