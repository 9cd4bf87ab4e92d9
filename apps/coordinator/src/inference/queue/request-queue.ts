/**
 * Gives jobs their place on a provider, and a short wait when all are busy: fair between accounts, bounded in number and time,
 * and refused at once where the wait would come to nothing. Someone who waits for one particular machine holds up nobody else.
 */
import type { TrustLevel } from '@inference/protocol';
import {
  type Choice,
  type LatencyEstimate,
  type NoPlacementReason,
  namesProvider,
  type PromptPrefix,
  type SchedulingRequest,
} from '@inference/scheduler';
import type { PlacementChoice } from '../../providers/placement/placement-service.js';
import type { ProviderSelector } from '../../providers/placement/served-models.js';
import type { ProviderSlot } from '../../providers/provider-connection.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { FairQueue, type Queued } from './fair-queue.js';
import { ServiceTimes } from './service-times.js';

export interface Placed {
  readonly kind: 'placed';
  readonly slot: ProviderSlot;
  /** How long the job was expected to take there when the place was given. */
  readonly estimate: LatencyEstimate;
  readonly why: Choice<unknown>['why'];
}

export type Placement =
  | Placed
  /** `retryAfterMs`: when coming back makes sense, as far as it was measured. */
  | { readonly kind: 'refused'; readonly reason: NotPlacedReason; readonly retryAfterMs: number | null };
/** `hopeless`: by what was measured, its turn would come far too late. */
export type NotPlacedReason = NoPlacementReason | 'timeout' | 'queue_full' | 'hopeless' | 'aborted';

export interface SlotRequest extends SchedulingRequest {
  readonly model: string;
  readonly accountId: string;
  /** Prefixes of the prompt, the shortest first: a machine that still knows one is sooner done. */
  readonly chain: readonly PromptPrefix[];
  /** It asks for more trust than its model does. */
  readonly ownFloor?: boolean;
  /** A machine that had it has failed. */
  readonly retried?: boolean;
}

interface Waiter extends Queued {
  readonly request: SlotRequest;
  /** It cannot take just any machine, so that one may be free for it while others wait. */
  readonly particular: boolean;
  /** Ends the wait. */
  readonly settle: (placement: Placement) => void;
}

type PlacedChoice = PlacementChoice & { readonly kind: 'placed' };

/** A wait is hopeless when it is expected to take this many times what there is. */
export const MAX_WAIT_RATIO = 2;
/** Nobody is told to come back later than this, in milliseconds. */
const MAX_RETRY_AFTER_MS = 120_000;

export class RequestQueue {
  readonly #fleet: Pick<ProviderRegistry, 'models' | 'placement'>;
  readonly #maxPerModel: number;
  readonly #floorOf: (model: string) => TrustLevel | null;
  readonly #queues = new Map<string, FairQueue<Waiter>>();
  readonly #times = new ServiceTimes();
  readonly #stopListening: () => void;

  /** `floorOf`: least trust that a model asks of machines, or null: any. */
  constructor(
    fleet: Pick<ProviderRegistry, 'models' | 'placement'>,
    maxPerModel: number,
    floorOf: (model: string) => TrustLevel | null = () => null,
  ) {
    this.#fleet = fleet;
    this.#maxPerModel = maxPerModel;
    this.#floorOf = floorOf;
    this.#stopListening = fleet.models.onCapacity((models) => {
      if (this.#queues.size === 0) return;
      for (const { id } of models) this.#serve(id);
    });
  }

  /**
   * A slot on the best provider, at once or within `waitMs`. Whoever gets a slot must start or release it, also when
   * the signal was aborted meanwhile.
   */
  place(request: SlotRequest, waitMs: number, signal: AbortSignal): Placement | Promise<Placement> {
    if (signal.aborted) return refused('aborted');
    const expectedMs = this.#expectedMs(request.model, request.accountId, request);
    // Behind a queue, a machine that has to load the model first may be quicker than one's turn.
    if (!this.#queues.has(request.model) || this.#fleet.models.canLoad(request.model)) {
      const placement = this.#tryNow(request, expectedMs);
      if (placement !== null) return placement;
    }
    if (this.#queues.has(request.model) && expectedMs !== null && expectedMs > MAX_WAIT_RATIO * waitMs)
      return refused('hopeless', expectedMs);
    return this.#wait(request, waitMs, signal);
  }

  /** Whether a machine without any other job could have the request now, while nobody waits for the model. */
  hasIdleProvider(request: SlotRequest): boolean {
    return this.#spare(request) !== null;
  }

  /** A slot on such a machine, at once or not at all: for a second attempt beside one that is late. */
  placeOnIdleProvider(request: SlotRequest): Placed | null {
    const choice = this.#spare(request);
    return choice === null ? null : placedOn(choice);
  }

  /** Takes in for how long a job took its place on a machine, in milliseconds. */
  served(model: string, ms: number): void {
    this.#times.add(model, ms);
  }

  /** Requests that wait, over all models. */
  get waiting(): number {
    let count = 0;
    for (const queue of this.#queues.values()) count += queue.size;
    return count;
  }

  /** Requests that wait for a model, and how long a new one that asks for this trust would, in milliseconds; null: not known. */
  outlook(model: string, trustFloor = this.#floorOf(model)): { readonly waiting: number; readonly waitMs: number | null } {
    const waiting = this.#queues.get(model)?.size ?? 0;
    const isFree = waiting === 0 && this.#fleet.models.isFree(model, trustFloor);
    return { waiting, waitMs: isFree ? 0 : this.#expectedMs(model, null, { providerSerial: null, trustFloor }) };
  }

  /** Refuses those who wait and have not attemptCount. What has attemptCount and failed may still get a placement. */
  drain(): void {
    this.#turnAway((waiter) => waiter.request.retried !== true);
  }

  close(): void {
    this.#stopListening();
    this.#turnAway(() => true);
  }

  #turnAway(whom: (waiter: Waiter) => boolean): void {
    for (const queue of [...this.#queues.values()]) {
      for (const waiter of [...queue.inOrder()]) if (whom(waiter)) waiter.settle(refused('aborted'));
    }
  }

  #wait(request: SlotRequest, waitMs: number, signal: AbortSignal): Promise<Placement> {
    return new Promise((resolve) => {
      const { model, accountId, work, exclude, ownFloor = false } = request;
      // A trust floor of the model's is the same for everyone in this queue.
      const particular = namesProvider(request) || exclude.size > 0 || ownFloor;
      const queue = this.#queues.get(model) ?? new FairQueue<Waiter>(this.#maxPerModel);
      const leave = (placement: Placement): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        if (placement.kind === 'placed') queue.served(waiter);
        else queue.remove(waiter);
        if (queue.size === 0) this.#queues.delete(model);
        resolve(placement);
      };
      const waiter: Waiter = { accountId, cost: work.promptTokens + work.completionTokens, request, particular, settle: leave };
      const abort = (): void => leave(refused('aborted'));
      const timeOut = (): void => {
        // It is not in its own way when it comes back.
        queue.remove(waiter);
        leave(this.#retryLater('timeout', request));
      };
      const timer = setTimeout(timeOut, Math.max(0, waitMs));
      signal.addEventListener('abort', abort);
      const hadOthers = queue.size > 0;
      const displaced = queue.add(waiter);
      if (queue.size > 0) this.#queues.set(model, queue);
      displaced?.settle(this.#retryLater('queue_full', displaced.request));
      // It may wait for a machine that is free while those before it wait for another.
      if (hadOthers && displaced !== waiter) this.#serve(model);
    });
  }

  #serve(model: string): void {
    let anyoneBusy = false;
    const queue = this.#queues.get(model);
    if (queue === undefined) return;
    for (const waiter of queue.inOrder()) {
      if (anyoneBusy && !waiter.particular) continue;
      const turnMs = this.#times.waitMs(model, 0, this.#fleet.models.slotCount(model, waiter.request));
      const placement = this.#tryNow(waiter.request, turnMs);
      if (placement !== null) waiter.settle(placement);
      else if (!waiter.particular) {
        anyoneBusy = true;
        if (!queue.some(({ particular }) => particular)) return;
      }
    }
  }

  #spare(request: SlotRequest): PlacedChoice | null {
    if (this.#queues.has(request.model)) return null;
    const placement = this.#fleet.placement.choose(request.model, { ...request, idleOnly: true }, request.chain);
    return placement.kind === 'placed' ? placement : null;
  }

  /** A slot, a refusal that waiting would not change, or null: busy. `waitMs`: what waiting is expected to take; null: not known. */
  #tryNow(request: SlotRequest, expectedWaitMs: number | null): Placement | null {
    const placement = this.#fleet.placement.choose(request.model, { ...request, expectedWaitMs }, request.chain);
    switch (placement.kind) {
      case 'placed':
        return placedOn(placement);
      case 'none':
        return refused(placement.reason);
      case 'busy':
        return null;
    }
  }

  /** A refusal that says when it would be one's turn after those who wait now. */
  #retryLater(reason: NotPlacedReason, request: SlotRequest): Placement {
    return refused(reason, this.#expectedMs(request.model, request.accountId, request));
  }

  /**
   * When a new request of this account would begin, or one that comes after all others; null: not known. One that may not go
   * anywhere waits for its turn, which all places bring nearer, and for one of its own places behind those that want the same.
   */
  #expectedMs(model: string, accountId: string | null, audience: ProviderSelector): number | null {
    const queue = this.#queues.get(model);
    const turnMs = this.#times.waitMs(model, queue?.aheadOf(accountId) ?? 0, this.#fleet.models.slotCount(model));
    const { providerSerial, providerId = null, trustFloor } = audience;
    const isForNamed = namesProvider(audience);
    if (!isForNamed && trustFloor !== 'hardware') return turnMs;
    const wantsTheSame = ({ request }: Waiter): boolean =>
      isForNamed
        ? request.providerSerial === providerSerial && (request.providerId ?? null) === providerId
        : request.trustFloor === trustFloor;
    const ownMs = this.#times.waitMs(model, queue?.aheadOf(accountId, wantsTheSame) ?? 0, this.#fleet.models.slotCount(model, audience));
    return turnMs === null || ownMs === null ? null : Math.max(turnMs, ownMs);
  }
}

function placedOn({ takeSlot, estimate, why }: PlacedChoice): Placed {
  return { kind: 'placed', slot: takeSlot(), estimate, why };
}

function refused(reason: NotPlacedReason, retryAfterMs: number | null = null): Placement {
  return { kind: 'refused', reason, retryAfterMs: retryAfterMs === null ? null : Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) };
}
