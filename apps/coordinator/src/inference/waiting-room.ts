/**
 * Gives jobs their place on a provider, and a short wait when all are busy: first come, first served per model, bounded in
 * number and time. Someone who waits for one particular machine holds up nobody else.
 */
import type { Fleet } from '../fleet/fleet.js';
import type { PlacementRequest } from '../fleet/placement.js';
import type { Slot } from '../fleet/slot.js';

export type Seat = { readonly kind: 'seated'; readonly slot: Slot } | { readonly kind: 'refused'; readonly reason: SeatRefusal };
export type SeatRefusal = 'no_such_serial' | 'all_failed' | 'none_routable' | 'timeout' | 'queue_full' | 'aborted';

export interface SeatRequest extends PlacementRequest {
  readonly model: string;
}

interface Waiter {
  readonly request: SeatRequest;
  readonly settle: (seat: Seat) => void;
}

export class WaitingRoom {
  readonly #fleet: Fleet;
  readonly #mostPerModel: number;
  readonly #queues = new Map<string, Set<Waiter>>();
  readonly #stopListening: () => void;

  constructor(fleet: Fleet, mostPerModel: number) {
    this.#fleet = fleet;
    this.#mostPerModel = mostPerModel;
    this.#stopListening = fleet.onCapacity((models) => {
      if (this.#queues.size === 0) return;
      for (const { id } of models) this.#serve(id);
    });
  }

  /**
   * A slot on the best provider, at once or within `waitMs`. Whoever gets a slot must start or release it, also when
   * the signal was aborted meanwhile.
   */
  seat(request: SeatRequest, waitMs: number, signal: AbortSignal): Seat | Promise<Seat> {
    if (signal.aborted) return refused('aborted');
    const queue = this.#queues.get(request.model);
    if (queue === undefined) {
      const seat = this.#tryNow(request);
      if (seat !== null) return seat;
    } else if (queue.size >= this.#mostPerModel) return refused('queue_full');
    return this.#wait(request, waitMs, signal);
  }

  /** Requests that wait, over all models. */
  get waiting(): number {
    let count = 0;
    for (const queue of this.#queues.values()) count += queue.size;
    return count;
  }

  close(): void {
    this.#stopListening();
    for (const queue of this.#queues.values()) for (const waiter of [...queue]) waiter.settle(refused('aborted'));
  }

  #wait(request: SeatRequest, waitMs: number, signal: AbortSignal): Promise<Seat> {
    return new Promise((resolve) => {
      const leave = (seat: Seat): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        const queue = this.#queues.get(request.model);
        queue?.delete(waiter);
        if (queue?.size === 0) this.#queues.delete(request.model);
        resolve(seat);
      };
      const waiter: Waiter = { request, settle: leave };
      const abort = (): void => leave(refused('aborted'));
      const timer = setTimeout(() => leave(refused('timeout')), Math.max(0, waitMs));
      signal.addEventListener('abort', abort);
      const queue = this.#queues.get(request.model);
      if (queue === undefined) this.#queues.set(request.model, new Set([waiter]));
      else {
        queue.add(waiter);
        // It may wait for a machine that is free while those before it wait for another.
        this.#serve(request.model);
      }
    });
  }

  #serve(model: string): void {
    let anyoneBusy = false;
    for (const waiter of [...(this.#queues.get(model) ?? [])]) {
      const { providerSerial, exclude } = waiter.request;
      const unconstrained = providerSerial === null && exclude.size === 0;
      if (unconstrained && anyoneBusy) continue;
      const seat = this.#tryNow(waiter.request);
      if (seat !== null) waiter.settle(seat);
      else if (unconstrained) anyoneBusy = true;
    }
  }

  /** A slot, a refusal that waiting would not change, or null: busy. */
  #tryNow(request: SeatRequest): Seat | null {
    const placement = this.#fleet.choose(request.model, request);
    switch (placement.kind) {
      case 'placed':
        return { kind: 'seated', slot: this.#fleet.takeSlot(placement.ordered[0].session) };
      case 'none':
        return refused(placement.reason);
      case 'busy':
        return null;
    }
  }
}

function refused(reason: SeatRefusal): Seat {
  return { kind: 'refused', reason };
}
