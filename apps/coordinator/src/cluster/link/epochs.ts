/**
 * `Epochs`: decides whether a received envelope (message of the link protocol) belongs to the current conversation of a link.
 *
 * An epoch is a random number that a coordinator chooses for a link, and again after a loss unless the peer restarted. Every envelope
 * names the epochs of its sender and of its receiver.
 */

/** Maximum stored earlier epochs of a peer. Late envelopes from these epochs are ignored. */
const MAX_RETIRED = 32;
const MAX_CANDIDATES = 8;

export type EnvelopeOrigin =
  /** From the peer's current epoch to this side's current epoch. */
  | 'current'
  /** From a new epoch of the peer, which already knows this side's epoch. */
  | 'new_peer'
  /** From an unknown epoch, new or old. The caller sends a probe to it, whose answer comes from the peer's current epoch. */
  | 'candidate'
  /** From the peer's current epoch, but without this side's epoch, which the peer did not know yet. */
  | 'unaware'
  /** From or to an earlier epoch. */
  | 'stale';

export class Epochs {
  readonly #random: () => number;
  /** Earlier epochs of the peer. */
  readonly #retired = new Set<number>();
  /** Epochs of envelopes classified as `candidate`. */
  readonly #candidates = new Set<number>();
  /** Epoch of this side. */
  own: number;
  /** Current epoch of the peer; 0 if unknown. */
  peer = 0;

  constructor(random: () => number) {
    this.#random = random;
    this.own = random();
  }

  /** Classifies an envelope by its two epochs. `receiverEpoch`: 0 if the sender does not know the epoch of this side. */
  classify(senderEpoch: number, receiverEpoch: number): EnvelopeOrigin {
    if (receiverEpoch !== 0 && receiverEpoch !== this.own) return 'stale';
    if (senderEpoch === this.peer) return receiverEpoch === 0 ? 'unaware' : 'current';
    if (this.#retired.has(senderEpoch)) return 'stale';
    if (receiverEpoch === this.own) return 'new_peer';
    this.#candidates.add(senderEpoch);
    if (this.#candidates.size > MAX_CANDIDATES) this.#candidates.delete(this.#candidates.values().next().value ?? 0);
    return 'candidate';
  }

  /** Makes an epoch the peer's current epoch, and retires the peer's other epochs. */
  adopt(epoch: number): void {
    for (const candidate of this.#candidates) if (candidate !== epoch) this.#retire(candidate);
    this.#candidates.clear();
    if (this.peer !== 0 && this.peer !== epoch) this.#retire(this.peer);
    this.peer = epoch;
  }

  /**
   * Call after a loss of the link. Forgets the peer's epoch, and chooses a new own epoch.
   *
   * `isPeerNew`: the peer has restarted or closed the link. The own epoch then stays, because the peer may already use it.
   */
  renew(isPeerNew: boolean): void {
    if (isPeerNew) {
      if (this.peer !== 0) this.#retire(this.peer);
    } else {
      this.own = this.#random();
      // A late envelope of an earlier epoch may have retired the peer's current epoch by mistake.
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
