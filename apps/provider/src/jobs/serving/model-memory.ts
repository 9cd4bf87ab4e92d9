/** `ModelMemory` keeps the estimated memory of a `ModelPool`'s models under a ceiling, by unloading unused ones. */
import type { ServedModel } from './served-model.js';

interface PooledModels {
  /** The models that jobs may use. */
  served(): Iterable<ServedModel>;
  /** Models that were removed and whose processes have not ended yet. */
  readonly leaving: Iterable<ServedModel>;
}

export class ModelMemory {
  readonly #models: PooledModels;
  #ceiling: number;

  /** @param ceiling Maximum bytes of all models together. */
  constructor(models: PooledModels, ceiling: number) {
    this.#models = models;
    this.#ceiling = ceiling;
  }

  /** Bytes of all models in memory. */
  get inUse(): number {
    let bytes = 0;
    for (const model of this.#models.served()) if (model.isInMemory) bytes += model.serving.need;
    for (const model of this.#models.leaving) if (model.isInMemory) bytes += model.serving.need;
    return bytes;
  }

  get isExceeded(): boolean {
    return this.inUse > this.#ceiling;
  }

  /** Whether memory will become free without a job having to end. */
  get isBeingFreed(): boolean {
    const isUnloading = [...this.#models.served()].some(({ state }) => state === 'unloading');
    return isUnloading || [...this.#models.leaving].some(({ leases }) => leases === 0);
  }

  /** Sets the ceiling, and sets `fits` of each model. Always-loaded models get memory first, in their order. */
  setCeiling(ceiling: number): void {
    this.#ceiling = ceiling;
    const models = [...this.#models.served()];
    let left = ceiling;
    for (const model of models) {
      if (model.keep.kind !== 'always') continue;
      model.fits = model.serving.need <= left;
      if (model.fits) left -= model.serving.need;
    }
    for (const model of models) if (model.keep.kind !== 'always') model.fits = model.serving.need <= left;
  }

  /**
   * Returns whether memory for the model is free now. Otherwise starts to unload unused models, least recently used first, if that
   * suffices.
   *
   * @param older Models that older jobs wait for. They stay loaded.
   */
  makeRoomFor(model: ServedModel, older: ReadonlySet<ServedModel>): boolean {
    let missing = this.inUse + model.serving.need - this.#ceiling;
    if (missing <= 0) return true;
    const served = [...this.#models.served()];
    const idle = served
      .filter((other) => other.state === 'ready' && other.leases === 0 && other.keep.kind !== 'always' && !older.has(other))
      .sort((a, b) => a.usedAt - b.usedAt);
    // A model being unloaded counts as in use until its process has ended.
    for (const other of served) if (other.state === 'unloading') missing -= other.serving.need;
    for (const other of this.#models.leaving) if (other.isInMemory) missing -= other.serving.need;
    const unneeded: ServedModel[] = [];
    for (const other of idle) {
      if (missing <= 0) break;
      unneeded.push(other);
      missing -= other.serving.need;
    }
    if (missing <= 0) for (const other of unneeded) void other.unload();
    return false;
  }
}
