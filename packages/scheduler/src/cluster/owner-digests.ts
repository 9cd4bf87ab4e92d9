/**
 * `OwnerDigests` stores the latest digest (summary of free slots) of each model from each coordinator, as input for `chooseOwner`.
 *
 * The store also counts slots requested since each digest, so that concurrent requests do not choose the same free slot.
 */
import { decodeDigest, EMPTY_DIGEST, type ModelDigest } from './model-digest.js';

/** Id of an owning coordinator, which holds providers' connections and alone places jobs on them. */
export type OwnerId = string;

/** One coordinator's digest of a model, with the slots requested since. */
export interface OwnerState {
  readonly digest: ModelDigest;
  /** Slots that the local coordinator requested or received since the digest, by class index. */
  readonly taken: readonly number[];
  /** Time of the coordinator's last message, in milliseconds; Infinity for the local digest. */
  readonly heardAt: number;
}

class StoredState implements OwnerState {
  readonly #owner: Owner;
  /** Decoded at the first read, because most published digests are never read. */
  #digest: ModelDigest | string;
  sequence: number;
  taken: number[] = [];
  /** Slot requests without a reply. */
  readonly pending = new Set<PendingRequest>();

  constructor(owner: Owner, digest: ModelDigest | string, sequence: number) {
    this.#owner = owner;
    this.#digest = digest;
    this.sequence = sequence;
  }

  get heardAt(): number {
    return this.#owner.heardAt;
  }

  get digest(): ModelDigest {
    if (typeof this.#digest === 'string') {
      const decoded = decodeDigest(this.#digest);
      this.#digest = decoded.kind === 'digest' ? decoded.digest : EMPTY_DIGEST;
    }
    return this.#digest;
  }

  update(digest: ModelDigest | string, sequence: number): void {
    this.#digest = digest;
    this.sequence = sequence;
    this.taken = [];
    for (const { classIndex } of this.pending) takeSlot(this.taken, classIndex);
  }
}

interface Owner {
  heardAt: number;
  /** Models with a digest of this owner. */
  readonly models: Set<string>;
}

interface PendingRequest {
  readonly classIndex: number;
}

const NONE: ReadonlyMap<OwnerId, OwnerState> = new Map();

export class OwnerDigests {
  /** Key: model id. */
  readonly #models = new Map<string, Map<OwnerId, StoredState>>();
  readonly #owners = new Map<OwnerId, Owner>();

  /**
   * Stores a digest. Invalid encoded digests read as {@link EMPTY_DIGEST}.
   *
   * @param sequence Increases with every digest of a model at an owner.
   * @returns Whether the digest is newer than the stored digest.
   */
  update(owner: OwnerId, model: string, digest: ModelDigest | string, sequence: number, now: number): boolean {
    const known = this.#models.get(model)?.get(owner);
    if (known !== undefined && sequence <= known.sequence) return false;
    const record = this.#ownerRecord(owner);
    record.heardAt = now;
    if (known === undefined) this.#add(record, owner, model, digest, sequence);
    else known.update(digest, sequence);
    return true;
  }

  heard(owner: OwnerId, now: number): void {
    const known = this.#owners.get(owner);
    if (known !== undefined) known.heardAt = now;
  }

  /** Removes an owner, or only its digest of one model. */
  remove(owner: OwnerId, model: string | null = null): void {
    const known = this.#owners.get(owner);
    if (known === undefined) return;
    for (const id of model === null ? known.models : [model]) {
      const owners = this.#models.get(id);
      owners?.delete(owner);
      if (owners?.size === 0) this.#models.delete(id);
    }
    if (model !== null) known.models.delete(model);
    if (model === null || known.models.size === 0) this.#owners.delete(owner);
  }

  of(model: string): ReadonlyMap<OwnerId, OwnerState> {
    return this.#models.get(model) ?? NONE;
  }

  /**
   * Marks a requested slot as taken until the first digest after the reply.
   *
   * @returns Function to call on the reply, before the reply's digest is stored.
   */
  markRequested(owner: OwnerId, model: string, classIndex: number): () => void {
    const known = this.#models.get(model)?.get(owner);
    if (known === undefined) return () => {};
    const pending = { classIndex };
    known.pending.add(pending);
    takeSlot(known.taken, classIndex);
    return () => known.pending.delete(pending);
  }

  #ownerRecord(owner: OwnerId): Owner {
    let known = this.#owners.get(owner);
    if (known === undefined) {
      known = { heardAt: Number.NEGATIVE_INFINITY, models: new Set() };
      this.#owners.set(owner, known);
    }
    return known;
  }

  #add(owner: Owner, id: OwnerId, model: string, digest: ModelDigest | string, sequence: number): void {
    owner.models.add(model);
    const owners = this.#models.get(model);
    const state = new StoredState(owner, digest, sequence);
    if (owners === undefined) this.#models.set(model, new Map([[id, state]]));
    else owners.set(id, state);
  }
}

function takeSlot(taken: number[], classIndex: number): void {
  while (taken.length <= classIndex) taken.push(0);
  taken[classIndex] = (taken[classIndex] ?? 0) + 1;
}
