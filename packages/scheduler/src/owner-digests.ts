/**
 * Latest digests of every coordinator, by model, with this coordinator's placements that the digests cannot contain yet. Time is an
 * argument.
 */
import type { ModelDigest } from './model-digest.js';

/** A coordinator, as holder of its providers' connections. */
export type OwnerId = string;

/** One coordinator's digest, as the choice sees it. */
export interface OwnerState {
  readonly digest: ModelDigest;
  /** Slots per class taken by own placements since the digest. */
  readonly taken: readonly number[];
  /** When the coordinator last sent anything, in milliseconds; infinite for the own one. */
  readonly heardAt: number;
}

interface StoredState {
  digest: ModelDigest;
  sequence: number;
  taken: number[];
  heardAt: number;
  /** Asked, without an answer yet. */
  readonly asked: Set<Asked>;
}

interface Asked {
  readonly classIndex: number;
}

const NONE: ReadonlyMap<OwnerId, OwnerState> = new Map();

export class OwnerDigests {
  readonly #models = new Map<string, Map<OwnerId, StoredState>>();

  /**
   * Stores a digest. `sequence` grows with every digest of one model at one owner; an older digest than the stored one is ignored,
   * because published digests may arrive after a newer reply.
   */
  update(owner: OwnerId, model: string, digest: ModelDigest, sequence: number, now: number): boolean {
    let owners = this.#models.get(model);
    if (owners === undefined) {
      owners = new Map();
      this.#models.set(model, owners);
    }
    const known = owners.get(owner);
    if (known !== undefined && sequence <= known.sequence) return false;
    if (known === undefined) {
      owners.set(owner, { digest, sequence, taken: [], heardAt: now, asked: new Set() });
      return true;
    }
    known.digest = digest;
    known.sequence = sequence;
    known.heardAt = now;
    known.taken = [];
    for (const { classIndex } of known.asked) take(known.taken, classIndex);
    return true;
  }

  /** The owner sent a sign of life. */
  heard(owner: OwnerId, now: number): void {
    for (const owners of this.#models.values()) {
      const known = owners.get(owner);
      if (known !== undefined) known.heardAt = now;
    }
  }

  /** Forgets an owner, or its digest of one model. */
  remove(owner: OwnerId, model: string | null = null): void {
    if (model !== null) this.#models.get(model)?.delete(owner);
    else for (const owners of this.#models.values()) owners.delete(owner);
  }

  /** Digests of a model, by owner. */
  of(model: string): ReadonlyMap<OwnerId, OwnerState> {
    return this.#models.get(model) ?? NONE;
  }

  /**
   * Subtracts a slot that an owner was asked for, until the next digest after the answer. Call the result on the answer, before
   * the answer's own digest is stored.
   */
  ask(owner: OwnerId, model: string, classIndex: number): () => void {
    const known = this.#models.get(model)?.get(owner);
    if (known === undefined) return () => {};
    const asked = { classIndex };
    known.asked.add(asked);
    take(known.taken, classIndex);
    return () => known.asked.delete(asked);
  }
}

function take(taken: number[], classIndex: number): void {
  while (taken.length <= classIndex) taken.push(0);
  taken[classIndex] = (taken[classIndex] ?? 0) + 1;
}
