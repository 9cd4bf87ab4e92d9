/** `Epochs`: the incarnations of both sides of a link, and the classification of envelopes by them. */

/** Earlier incarnations of a peer whose late envelopes are ignored. */
const MAX_RETIRED = 32;
const MAX_CANDIDATES = 8;

export type EnvelopeOrigin =
  | 'current'
  /** The peer has a new incarnation, which knows this one. */
  | 'new_peer'
  /** A new incarnation of the peer or a late envelope: a probe decides which. */
  | 'candidate'
  /** The present incarnation of the peer does not know this one. */
  | 'unaware'
  /** The envelope is from or to an earlier incarnation. */
  | 'stale';

export class Epochs {
  readonly #random: () => number;
  readonly #retired = new Set<number>();
  readonly #candidates = new Set<number>();
  own: number;
  /** 0 if unknown. */
  peer = 0;

  constructor(random: () => number) {
    this.#random = random;
    this.own = random();
  }

  classify(from: number, to: number): EnvelopeOrigin {
    if (to !== 0 && to !== this.own) return 'stale';
    if (from === this.peer) return to === 0 ? 'unaware' : 'current';
    if (this.#retired.has(from)) return 'stale';
    if (to === this.own) return 'new_peer';
    this.#candidates.add(from);
    if (this.#candidates.size > MAX_CANDIDATES) this.#candidates.delete(this.#candidates.values().next().value ?? 0);
    return 'candidate';
  }

  /** Makes the epoch the peer's current one. Other epochs of the peer are earlier ones. */
  adopt(epoch: number): void {
    for (const candidate of this.#candidates) if (candidate !== epoch) this.#retire(candidate);
    this.#candidates.clear();
    if (this.peer !== 0 && this.peer !== epoch) this.#retire(this.peer);
    this.peer = epoch;
  }

  /** Starts a new epoch after a loss. A new peer already addresses the current epoch, which then stays. */
  renew(isPeerNew: boolean): void {
    if (isPeerNew) {
      if (this.peer !== 0) this.#retire(this.peer);
    } else {
      this.own = this.#random();
      // A late envelope of an earlier incarnation may have retired the right epoch by mistake.
      this.#retired.clear();
    }
    this.#candidates.clear();
    this.peer = 0;
  }

  #retire(epoch: number): void {
    this.#retired.add(epoch);
    if (this.#retired.size > MAX_RETIRED) this.#retired.delete(this.#retired.values().next().value ?? 0);
  }
}
