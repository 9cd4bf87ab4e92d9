/**
 * `RequestQueue` reserves provider slots for attempts, on providers of this coordinator. While all suitable providers are busy, requests
 * wait, fairly between accounts and limited in number and time.
 *
 * Used by `AttemptPlacement`. In a cluster, `ClusterPlacements` lies between both.
 */
import type { ImageRequestParams } from '@inference/formats';
import type { ProviderId, TrustLevel } from '@inference/protocol';
import {
  type Choice,
  type LatencyEstimate,
  type NoPlacementReason,
  type PromptPrefix,
  type SchedulingRequest,
  selectsProviders,
} from '@inference/scheduler';
import type { ProviderSelector } from '../../providers/placement/model-directory.js';
import type { PlacementChoice } from '../../providers/placement/placement-service.js';
import type { ProviderSlot } from '../../providers/provider-connection.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { type Placements, type ResolvedSerial, resolvedProvider } from '../placements.js';
import { FairQueue, type Queued } from './fair-queue.js';
import { ServiceTimes } from './service-times.js';

export interface Placed {
  readonly kind: 'placed';
  readonly slot: ProviderSlot;
  /** Expected latency on this provider, at placement. */
  readonly estimate: LatencyEstimate;
  /** Why the scheduler chose this provider, for metrics and traces. */
  readonly why: Choice<unknown>['why'];
}

export type Placement =
  | Placed
  /** `retryAfterMs` is the expected wait, if known, for the Retry-After header. */
  | { readonly kind: 'refused'; readonly reason: NotPlacedReason; readonly retryAfterMs: number | null };
/** A request is `hopeless` if the expected wait exceeds the maximum wait by {@link MAX_WAIT_RATIO}. */
export type NotPlacedReason = NoPlacementReason | 'timeout' | 'queue_full' | 'hopeless' | 'aborted';

export interface SlotRequest extends SchedulingRequest {
  readonly model: string;
  readonly accountId: string;
  /** Prefix hashes of the prompt, shortest first, for prefix affinity. */
  readonly promptPrefixes: readonly PromptPrefix[];
  /** Whether the client requires a higher trust level than the model does. */
  readonly hasClientFloor?: boolean;
  /** Whether an earlier attempt of the job has failed. */
  readonly retried?: boolean;
  /** Owners whose providers get no further attempt of this job. */
  readonly excludedOwners?: ReadonlySet<string>;
  /** True for a request of another coordinator's client, because that coordinator counts the wait with {@link RequestQueue.countWait}. */
  readonly isCounted?: boolean;
  /** Images that an image job generates. */
  readonly image?: ImageDemand | null;
}

/** Images that a provider must be able to make. */
export interface ImageDemand extends Pick<ImageRequestParams, 'size' | 'count'> {
  /** `<width>x<height>` of every image. */
  readonly pixels: string;
}

interface Waiter extends Queued {
  readonly request: SlotRequest;
  /** Whether only some of the model's providers are suitable. One of these may be free while requests ahead still wait. */
  readonly isRestricted: boolean;
  readonly resolve: (placement: Placement) => void;
}

type LocalProviders = Pick<ProviderRegistry, 'models' | 'placement'>;
type PlacedChoice = PlacementChoice & { readonly kind: 'placed' };

/** A request behind others is refused at once if the expected wait exceeds the maximum wait by this factor. */
export const MAX_WAIT_RATIO = 2;
/** Maximum `Retry-After`, in milliseconds. */
const MAX_RETRY_AFTER_MS = 3_600_000;

export class RequestQueue implements Placements {
  readonly #registry: LocalProviders;
  readonly #maxPerModel: number;
  readonly #floorOf: (model: string) => TrustLevel | null;
  /** Queues that are not empty. Key: model. */
  readonly #queues = new Map<string, FairQueue<Waiter>>();
  /** Number of waits that {@link countWait} counts, by model. */
  readonly #countedWaits = new Map<string, number>();
  readonly #serviceTimes = new ServiceTimes();
  readonly #stopListening: () => void;

  /** `floorOf` returns the minimum trust level that the operator sets for a model, if any. */
  constructor(registry: LocalProviders, maxPerModel: number, floorOf: (model: string) => TrustLevel | null = () => null) {
    this.#registry = registry;
    this.#maxPerModel = maxPerModel;
    this.#floorOf = floorOf;
    this.#stopListening = registry.models.onCapacity((models) => {
      if (this.#queues.size === 0) return;
      for (const { id } of models) this.#serve(id);
    });
  }

  place(request: SlotRequest, waitMs: number, signal: AbortSignal): Placement | Promise<Placement> {
    if (signal.aborted) return refused('aborted');
    const expectedMs = this.#expectedMs(request.model, request.accountId, request);
    // Even if others wait: a provider that must load the model first may be faster than the queue.
    if (!this.#queues.has(request.model) || this.#registry.models.canLoad(request.model)) {
      const placement = this.#tryNow(request, expectedMs);
      if (placement !== null) return placement;
    }
    if (waitMs <= 0) {
      // The queued requests have already taken all free providers that suit them. Only a restricted request may find another one.
      const placement = this.#queues.has(request.model) && isRestricted(request) ? this.#tryNow(request, expectedMs) : null;
      return placement ?? this.#retryLater('timeout', request);
    }
    if (this.#queues.has(request.model) && expectedMs !== null && expectedMs > MAX_WAIT_RATIO * waitMs)
      return refused('hopeless', expectedMs);
    return this.#wait(request, waitMs, signal);
  }

  /** Places without waiting. Null if all suitable providers are busy, or if others wait and no provider can load the model. */
  placeNow(request: SlotRequest): Placement | null {
    if (this.#queues.has(request.model) && !this.#registry.models.canLoad(request.model)) return null;
    return this.#tryNow(request, this.#expectedMs(request.model, request.accountId, request));
  }

  resolveSerial(serialNumber: string): ResolvedSerial {
    return resolvedProvider(this.#registry.placement.claimants(serialNumber));
  }

  hasIdleProvider(request: SlotRequest): boolean {
    return this.#idleProvider(request) !== null;
  }

  placeOnIdleProvider(request: SlotRequest): Placed | null {
    const choice = this.#idleProvider(request);
    return choice === null ? null : placedOn(choice);
  }

  served(model: string, ms: number): void {
    this.#serviceTimes.add(model, ms);
  }

  /** Mean time for which a job occupies its slot, in milliseconds. Null until enough jobs were measured. */
  meanServiceMs(model: string): number | null {
    return this.#serviceTimes.waitMs(model, 0, 1);
  }

  /** Number of queued requests of all models, including those of other coordinators' clients. */
  get waiting(): number {
    let count = 0;
    for (const queue of this.#queues.values()) count += queue.size;
    return count;
  }

  /** Counts a local client's request that waits at several coordinators as one wait. Returns a function that ends the wait. */
  countWait(model: string): () => void {
    const add = (change: number): void => {
      const count = (this.#countedWaits.get(model) ?? 0) + change;
      if (count === 0) this.#countedWaits.delete(model);
      else this.#countedWaits.set(model, count);
    };
    add(1);
    return () => add(-1);
  }

  /** Number of waiting requests of local clients, for one model or for all (null). Each request counts once. */
  waitingOfOwnClients(model: string | null): number {
    const isOwn = ({ request }: Waiter): boolean => request.isCounted !== true;
    if (model !== null) return (this.#queues.get(model)?.count(isOwn) ?? 0) + (this.#countedWaits.get(model) ?? 0);
    let count = 0;
    for (const waits of this.#countedWaits.values()) count += waits;
    for (const queue of this.#queues.values()) count += queue.count(isOwn);
    return count;
  }

  /** Queue length of a model, and expected wait of a new request with this minimum trust level, in milliseconds (null if unknown). */
  outlook(model: string, trustFloor = this.#floorOf(model)): { readonly waiting: number; readonly waitMs: number | null } {
    const waiting = this.#queues.get(model)?.size ?? 0;
    const isFree = waiting === 0 && this.#registry.models.isFree(model, trustFloor);
    return { waiting, waitMs: isFree ? 0 : this.#expectedMs(model, null, { providerSerial: null, trustFloor }) };
  }

  /** For a shutdown: refuses queued requests that had no attempt yet. Requests with a failed attempt may still get a slot. */
  drain(): void {
    this.#refuseWaiting((waiter) => waiter.request.retried !== true);
  }

  /** Refuses all queued requests, for a shutdown. */
  close(): void {
    this.#stopListening();
    this.#refuseWaiting(() => true);
  }

  #refuseWaiting(isRefused: (waiter: Waiter) => boolean): void {
    for (const queue of [...this.#queues.values()]) {
      for (const waiter of [...queue.inOrder()]) if (isRefused(waiter)) waiter.resolve(refused('aborted'));
    }
  }

  #wait(request: SlotRequest, waitMs: number, signal: AbortSignal): Promise<Placement> {
    return new Promise((resolve) => {
      const { model, accountId, work } = request;
      const queue = this.#queues.get(model) ?? new FairQueue<Waiter>(this.#maxPerModel);
      const leave = (placement: Placement): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        if (placement.kind === 'placed') queue.served(waiter);
        else queue.remove(waiter);
        if (queue.size === 0) this.#queues.delete(model);
        resolve(placement);
      };
      const waiter: Waiter = {
        accountId,
        cost: work.promptTokens + work.completionTokens,
        request,
        isRestricted: isRestricted(request),
        resolve: leave,
      };
      const abort = (): void => leave(refused('aborted'));
      const timeOut = (): void => {
        // Removes the request first, so that the estimate of the wait does not count it.
        queue.remove(waiter);
        leave(this.#retryLater('timeout', request));
      };
      const timer = setTimeout(timeOut, Math.max(0, waitMs));
      signal.addEventListener('abort', abort);
      const hadOthers = queue.size > 0;
      const displaced = queue.add(waiter);
      if (queue.size > 0) this.#queues.set(model, queue);
      displaced?.resolve(this.#retryLater('queue_full', displaced.request));
      // A free provider may suit this request although it suits none of the requests ahead.
      if (hadOthers && displaced !== waiter) this.#serve(model);
    });
  }

  /** Gives free slots to waiting requests, in order. Once an unrestricted request gets none, only restricted ones are tried. */
  #serve(model: string): void {
    let isUnrestrictedBlocked = false;
    const queue = this.#queues.get(model);
    if (queue === undefined) return;
    for (const waiter of queue.inOrder()) {
      if (isUnrestrictedBlocked && !waiter.isRestricted) continue;
      const nextSlotMs = this.#serviceTimes.waitMs(model, 0, this.#registry.models.slotCount(model, waiter.request));
      const placement = this.#tryNow(waiter.request, nextSlotMs);
      if (placement !== null) waiter.resolve(placement);
      else if (!waiter.isRestricted) {
        isUnrestrictedBlocked = true;
        if (!queue.some(({ isRestricted }) => isRestricted)) return;
      }
    }
  }

  #idleProvider(request: SlotRequest): PlacedChoice | null {
    if (this.#queues.has(request.model)) return null;
    const placement = this.#registry.placement.choose(request.model, { ...request, idleOnly: true }, request.promptPrefixes);
    return placement.kind === 'placed' ? placement : null;
  }

  /** Returns a slot, a refusal that waiting would not change, or null if all suitable providers are busy. */
  #tryNow(request: SlotRequest, expectedWaitMs: number | null): Placement | null {
    const placement = this.#registry.placement.choose(request.model, { expectedWaitMs, ...request }, request.promptPrefixes);
    switch (placement.kind) {
      case 'placed':
        return placedOn(placement);
      case 'none':
        return refused(placement.reason);
      case 'busy':
        return null;
    }
  }

  /** A refusal with the expected wait behind the currently queued requests. */
  #retryLater(reason: NotPlacedReason, request: SlotRequest): Placement {
    return refused(reason, this.#expectedMs(request.model, request.accountId, request));
  }

  /**
   * Expected wait of a new request of this account, or behind all queued requests (`accountId` null), in milliseconds. Null if unknown.
   *
   * A restricted request also waits behind requests with the same restriction.
   */
  #expectedMs(model: string, accountId: string | null, selector: ProviderSelector): number | null {
    const queue = this.#queues.get(model);
    const anySlotMs = this.#serviceTimes.waitMs(model, queue?.aheadOf(accountId) ?? 0, this.#registry.models.slotCount(model));
    const { providerSerial, providerId = null, candidates = null, filter = null, trustFloor } = selector;
    const isForSelected = selectsProviders(selector);
    if (!isForSelected && trustFloor !== 'hardware') return anySlotMs;
    const hasSameRestriction = ({ request }: Waiter): boolean =>
      isForSelected
        ? request.providerSerial === providerSerial &&
          (request.providerId ?? null) === providerId &&
          overlap(request.candidates ?? null, candidates) &&
          // Two filters are assumed to share a provider.
          ((request.filter ?? null) === null) === (filter === null)
        : request.trustFloor === trustFloor;
    const suitableSlotMs = this.#serviceTimes.waitMs(
      model,
      queue?.aheadOf(accountId, hasSameRestriction) ?? 0,
      this.#registry.models.slotCount(model, selector),
    );
    return anySlotMs === null || suitableSlotMs === null ? null : Math.max(anySlotMs, suitableSlotMs);
  }
}

/** Whether only some providers are suitable. A trust level set for the model does not count: it restricts the whole queue. */
function isRestricted({ exclude, hasClientFloor = false, ...selection }: SlotRequest): boolean {
  return selectsProviders(selection) || exclude.size > 0 || hasClientFloor;
}

/** Whether two candidate sets share a provider. Null means any provider, and matches only null. */
function overlap(some: ReadonlySet<ProviderId> | null, others: ReadonlySet<ProviderId> | null): boolean {
  if (some === null || others === null) return some === others;
  return [...some].some((providerId) => others.has(providerId));
}

function placedOn({ takeSlot, estimate, why }: PlacedChoice): Placed {
  return { kind: 'placed', slot: takeSlot(), estimate, why };
}

function refused(reason: NotPlacedReason, retryAfterMs: number | null = null): Placement {
  return { kind: 'refused', reason, retryAfterMs: retryAfterMs === null ? null : Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) };
}
