/** `PeerSilence` decides when a `PeerLink` is lost because the peer was silent, or NATS disconnected, for too long. */
import type { LossReason } from './link-error.js';

/** Interval at which a link calls {@link PeerSilence.advance}. */
export const TICK_MS = 100;
/** Maximum silence of a peer while the transport is connected. */
const MAX_SILENCE_MS = 3_000;
/** Maximum silence of a peer after NATS has reported that nobody subscribes to the peer's subject. */
const MAX_SILENCE_WITHOUT_RESPONDERS_MS = 1_500;
/** Maximum time without a connection to NATS. */
const MAX_DISCONNECTED_MS = 10_000;

export class PeerSilence {
  #advancedAt: number;
  #silentMs = 0;
  #disconnectedMs = 0;
  #hasNoResponders = false;

  constructor(now: number) {
    this.#advancedAt = now;
  }

  /** Call for each envelope of the peer. */
  heard(): void {
    this.#silentMs = 0;
    this.#hasNoResponders = false;
  }

  noResponders(): void {
    this.#hasNoResponders = true;
  }

  resumed(): void {
    this.heard();
    this.#disconnectedMs = 0;
  }

  /** Call when a new conversation starts, and when its link is up. */
  restarted(): void {
    this.#silentMs = 0;
    this.#disconnectedMs = 0;
  }

  /** Adds the time since the previous call. Returns the reason if the link is lost now, else null. */
  advance(now: number, isTransportConnected: boolean, state: 'connecting' | 'up' | 'lost'): LossReason | null {
    // Limited, so that a stall of this process is not mistaken for silence of the peer.
    const elapsed = Math.min(now - this.#advancedAt, 2 * TICK_MS);
    this.#advancedAt = now;
    if (!isTransportConnected) {
      this.#disconnectedMs += elapsed;
      return state !== 'lost' && this.#disconnectedMs > MAX_DISCONNECTED_MS ? 'transport_disconnected' : null;
    }
    this.#silentMs += elapsed;
    if (state === 'lost') return null;
    if (this.#silentMs > MAX_SILENCE_MS) return state === 'connecting' && this.#hasNoResponders ? 'no_responders' : 'silent';
    // A connecting peer may not have subscribed yet.
    return state === 'up' && this.#hasNoResponders && this.#silentMs > MAX_SILENCE_WITHOUT_RESPONDERS_MS ? 'no_responders' : null;
  }
}
