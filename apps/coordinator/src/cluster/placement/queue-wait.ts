/** `QueueWait`: lets one request wait in the queues of several coordinators. The first slot wins; later slots are released. */
import type { Placed, Placement } from '../../inference/queue/request-queue.js';
import { type Refused, refused, reportedRefusal } from './refusals.js';

/** Minimum time between two attempts of a waiting request to get a free slot at a peer. */
const RETRY_INTERVAL_MS = 100;

interface QueueWaitOptions {
  readonly now: () => number;
  /** Tries to get a free slot at a peer without waiting; null: none is free. */
  readonly placeNow: (signal: AbortSignal) => Promise<Placed | null>;
}

/** Places the request in one coordinator's queue. */
type Enqueue = (signal: AbortSignal) => Placement | Promise<Placement>;

export class QueueWait {
  readonly #options: QueueWaitOptions;
  /** Aborted when the wait ends, so that the request leaves all queues. */
  readonly #abort = new AbortController();
  readonly #refusals: Refused[] = [];
  /** Queues that have not answered yet. */
  #pendingCount = 0;
  #isOver = false;
  #retriedAt: number;
  #isRetrying = false;
  #resolve: (placement: Placement) => void = () => {};

  constructor(options: QueueWaitOptions) {
    this.#options = options;
    this.#retriedAt = options.now();
  }

  /** Resolves to the first slot, or to a refusal once all queues have refused. Never rejects. */
  run(signal: AbortSignal, queues: readonly Enqueue[]): Promise<Placement> {
    const onAbort = (): void => this.#finish(refused('aborted'));
    const result = new Promise<Placement>((resolve) => {
      this.#resolve = resolve;
    });
    signal.addEventListener('abort', onAbort);
    // The first queue may refuse at once. Without this extra count, the wait would end before the other queues are entered.
    this.#pendingCount++;
    for (const enqueue of queues) if (!this.#isOver) this.#enter(enqueue);
    this.#pendingCount--;
    this.#finishIfRefused();
    return result.finally(() => signal.removeEventListener('abort', onAbort));
  }

  /** Tries to get a free slot at a peer, at most every {@link RETRY_INTERVAL_MS}. */
  retry(): void {
    const at = this.#options.now();
    if (this.#isRetrying || this.#isOver || Math.abs(at - this.#retriedAt) < RETRY_INTERVAL_MS) return;
    this.#retriedAt = at;
    this.#isRetrying = true;
    const settle = (placed: Placed | null): void => {
      this.#isRetrying = false;
      if (placed !== null) this.#finish(placed);
    };
    void this.#options.placeNow(this.#abort.signal).then(settle, () => settle(null));
  }

  #enter(enqueue: Enqueue): void {
    this.#pendingCount++;
    const placement = enqueue(this.#abort.signal);
    if (placement instanceof Promise)
      void placement.then(
        (settled) => this.#settle(settled),
        () => this.#settle(refused('none_routable')),
      );
    else this.#settle(placement);
  }

  #settle(placement: Placement): void {
    this.#pendingCount--;
    if (placement.kind === 'placed') this.#finish(placement);
    else {
      this.#refusals.push(placement);
      this.#finishIfRefused();
    }
  }

  #finishIfRefused(): void {
    if (!this.#isOver && this.#pendingCount === 0) this.#finish(reportedRefusal(this.#refusals));
  }

  /** Ends the wait. If the wait has already ended, releases the slot. */
  #finish(placement: Placement): void {
    if (this.#isOver) {
      if (placement.kind === 'placed') placement.slot.release();
      return;
    }
    this.#isOver = true;
    this.#resolve(placement);
    this.#abort.abort();
  }
}
