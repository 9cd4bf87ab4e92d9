/** `PeerSilence` decides when a silent peer or absent transport is a lost link. Stalls of this process hardly count. */
import type { LossReason } from './link-error.js';

/** Interval at which a link calls {@link PeerSilence.advance}. */
export const TICK_MS = 100;
/** Silence after which a peer is lost while the transport is connected. */
const MAX_SILENCE_MS = 3_000;
/** Silence after which a peer is lost if the server reported that the peer has no subscription. */
const MAX_SILENCE_WITHOUT_RESPONDERS_MS = 1_500;
/** Time without a transport after which the peer is lost. */
const MAX_PAUSE_MS = 10_000;

export class PeerSilence {
  #advancedAt: number;
  #silentMs = 0;
  #pausedMs = 0;
  #hasNoResponders = false;

  constructor(now: number) {
    this.#advancedAt = now;
  }

  /** The peer sent something. */
  heard(): void {
    this.#silentMs = 0;
    this.#hasNoResponders = false;
  }

  /** The server reported that nobody subscribes to the peer's subject. */
  noResponders(): void {
    this.#hasNoResponders = true;
  }

  /** The transport is connected again. */
  resumed(): void {
    this.heard();
    this.#pausedMs = 0;
  }

  /** A new conversation begins, or comes up. */
  restarted(): void {
    this.#silentMs = 0;
    this.#pausedMs = 0;
  }

  /** Counts the time since the last call. Returns the reason of a loss, once, or null. */
  advance(now: number, isTransportConnected: boolean, state: 'connecting' | 'up' | 'lost'): LossReason | null {
    // A stalled process must not count its own stall as silence of its peers.
    const elapsed = Math.min(now - this.#advancedAt, 2 * TICK_MS);
    this.#advancedAt = now;
    if (!isTransportConnected) {
      this.#pausedMs += elapsed;
      return state !== 'lost' && this.#pausedMs > MAX_PAUSE_MS ? 'transport_disconnected' : null;
    }
    this.#silentMs += elapsed;
    if (state === 'lost') return null;
    if (this.#silentMs > MAX_SILENCE_MS) return state === 'connecting' && this.#hasNoResponders ? 'no_responders' : 'silent';
    // A connecting peer may not have subscribed yet.
    return state === 'up' && this.#hasNoResponders && this.#silentMs > MAX_SILENCE_WITHOUT_RESPONDERS_MS ? 'no_responders' : null;
  }
}
