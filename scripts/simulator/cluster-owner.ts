/**
 * `ClusterOwner`: simulated coordinator of a cluster. Places jobs of all coordinators on the machines that are connected to it, queues
 * requests, and computes digests: summaries of free slots per model.
 */
import { digestOf, EMPTY_DIGEST, type ModelDigest, OwnerDigests, type OwnerId, OwnerPrefixes, storedPrefixes } from '@inference/scheduler';
import { JOB_TIMINGS, MAX_WAITING_PER_MODEL } from '../../apps/coordinator/src/inference/job-timings.js';
import { FairQueue, type Queued } from '../../apps/coordinator/src/inference/queue/fair-queue.js';
import { type OwnerDependencies, type Placeable, type Reservation, SimulatedOwner } from './owner.js';

/** Place of a request in the queue of one coordinator. A request may have tickets at several coordinators. */
export interface Ticket extends Queued {
  readonly request: Placeable;
  readonly owner: ClusterOwner;
  /** Called with a free slot. The callee must start or release the reservation. */
  granted(reservation: Reservation): void;
  /** Called when the queue is full and drops the ticket. */
  displaced(): void;
  lost(): void;
}

export interface NumberedDigest {
  readonly digest: ModelDigest;
  /** Grows with each digest of the model at its owner. */
  readonly sequence: number;
}

export interface ClusterOwnerDependencies extends Omit<OwnerDependencies, 'onCapacity' | 'onIndexed' | 'onPrefixesCached'> {
  /** Called when the digest of a model is out of date. */
  readonly onDigestChanged: (owner: ClusterOwner, model: string) => void;
  /** Called when a machine has answered a prompt with these prefixes. */
  readonly onPrefixesCached: (owner: ClusterOwner, hashes: readonly number[]) => void;
}

export class ClusterOwner {
  readonly id: OwnerId;
  readonly owner: SimulatedOwner;
  /** Latest digests of all coordinators that have arrived here. */
  readonly digests = new OwnerDigests();
  /** Cached prefixes reported by other coordinators. */
  readonly prefixes = new OwnerPrefixes();
  isAlive = true;
  readonly #deps: ClusterOwnerDependencies;
  /** In this and the following collections, the key is the model id. A queue exists only while requests wait. */
  readonly #queues = new Map<string, FairQueue<Ticket>>();
  readonly #current = new Map<string, NumberedDigest>();
  readonly #outdated = new Set<string>();

  constructor(id: OwnerId, deps: ClusterOwnerDependencies) {
    this.id = id;
    this.#deps = deps;
    this.owner = new SimulatedOwner({
      ...deps,
      onCapacity: (model) => this.#serve(model),
      onIndexed: (model) => this.#markOutdated(model),
      onPrefixesCached: (promptPrefixes) =>
        deps.onPrefixesCached(
          this,
          storedPrefixes(promptPrefixes).map(({ hash }) => hash),
        ),
    });
  }

  /** Current digest of a model. An outdated digest is recomputed, with the next sequence number. */
  digest(model: string): NumberedDigest {
    const known = this.#current.get(model);
    if (known !== undefined && !this.#outdated.has(model)) return known;
    const pool = this.owner.poolAt(model);
    const context = {
      queueLength: this.#queues.get(model)?.size ?? 0,
      meanServiceMs: this.owner.times.waitMs(model, 0, 1),
      imageSizes: [],
    };
    const current = { digest: pool === null ? EMPTY_DIGEST : digestOf(pool, context), sequence: (known?.sequence ?? 0) + 1 };
    this.#current.set(model, current);
    this.#outdated.delete(model);
    return current;
  }

  models(): Iterable<string> {
    return this.#current.keys();
  }

  /** Reserves a slot. Returns `busy` also while requests queue, unless a machine may and can load the model. */
  place(request: Placeable, expectedWaitMs: number | null, loadedOnly: boolean): Reservation | 'busy' | 'none' {
    const { model } = request.job;
    if (this.#queues.has(model) && (loadedOnly || this.owner.coldOf(model) === 0)) return 'busy';
    const picked = this.owner.choose(request, expectedWaitMs, loadedOnly);
    return typeof picked === 'string' ? picked : this.owner.reserve(request, picked);
  }

  /** Queues a ticket. Returns `hopeless` if the expected wait exceeds the maximum. */
  enqueue(ticket: Ticket): 'queued' | 'hopeless' | 'queue_full' {
    const { model } = ticket.request.job;
    const queue = this.#queues.get(model) ?? new FairQueue<Ticket>(MAX_WAITING_PER_MODEL);
    const expectedMs = this.owner.times.waitMs(model, queue.aheadOf(ticket.accountId), this.owner.slotsOf(model));
    if (queue.size > 0 && expectedMs !== null && expectedMs > this.#deps.policy.maxWaitRatio * JOB_TIMINGS.queueMs) return 'hopeless';
    const displaced = queue.add(ticket);
    if (displaced === ticket) return 'queue_full';
    this.#queues.set(model, queue);
    this.#markOutdated(model);
    displaced?.displaced();
    this.#serve(model);
    return 'queued';
  }

  cancel(ticket: Ticket): void {
    const { model } = ticket.request.job;
    const queue = this.#queues.get(model);
    if (queue === undefined) return;
    queue.remove(ticket);
    this.#endQueue(model, queue);
  }

  /** Kills the coordinator: machines disconnect, jobs fail, tickets are lost. Returns the disconnected machines. */
  die(): readonly SimulatedOwnerMac[] {
    this.isAlive = false;
    const tickets = [...this.#queues.values()].flatMap((queue) => [...queue.inOrder()]);
    this.#queues.clear();
    const macs = this.owner.connectedMacs();
    for (const mac of macs) this.owner.left(mac);
    for (const mac of macs) mac.leave();
    for (const ticket of tickets) ticket.lost();
    return macs;
  }

  /** Grants free slots to queued tickets, in fair order. */
  #serve(model: string): void {
    const queue = this.#queues.get(model);
    if (queue === undefined) return;
    const turnMs = this.owner.times.waitMs(model, 0, this.owner.slotsOf(model));
    let isFirstBusy = false;
    for (const ticket of queue.inOrder()) {
      const isRestricted = ticket.request.exclude.size > 0;
      if (isFirstBusy && !isRestricted) continue;
      const picked = this.owner.choose(ticket.request, turnMs);
      if (typeof picked === 'string') {
        if (isRestricted) continue;
        isFirstBusy = true;
        if (!queue.some(({ request }) => request.exclude.size > 0)) break;
      } else {
        queue.served(ticket);
        ticket.granted(this.owner.reserve(ticket.request, picked));
      }
    }
    this.#endQueue(model, queue);
  }

  #endQueue(model: string, queue: FairQueue<Ticket>): void {
    if (queue.size === 0 && this.#queues.get(model) === queue) this.#queues.delete(model);
    this.#markOutdated(model);
  }

  #markOutdated(model: string): void {
    this.#outdated.add(model);
    this.#deps.onDigestChanged(this, model);
  }
}

type SimulatedOwnerMac = ReturnType<SimulatedOwner['connectedMacs']>[number];
