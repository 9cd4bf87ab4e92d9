/**
 * `MovedProviders`: ends the older connection of a provider that has connected to another coordinator.
 *
 * The older connection is often half-open: the provider has lost it, but the coordinator has not noticed.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { fromBase64, fromUtf8, type ProviderId, type SignedStatement } from '@inference/protocol';
import { PEER_SILENCE_MS } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { ProviderSnapshot } from '../../providers/provider-snapshot.js';
import { encodeMessage } from '../json-message.js';
import type { Peer } from '../peer.js';
import { parseDescribeRequest } from './placement-messages.js';
import { type DescriptionRules, requestDescription } from './provider-description.js';

interface MovedProvidersOptions {
  readonly registry: {
    snapshot(providerId: ProviderId): ProviderSnapshot | null;
    readonly placement: { replacedElsewhere(providerId: ProviderId): void };
  };
  readonly peers: () => readonly Peer[];
  /** Peer with this id; null: not live. */
  readonly peer: (id: string) => Peer | null;
  readonly rules: DescriptionRules;
  /** Pause before an announcement is repeated, in milliseconds. Default 1 s. */
  readonly retryMs?: number;
}

/** A connection of a provider to this coordinator. */
interface Connection {
  readonly providerId: ProviderId;
  readonly sessionId: string;
  /** Time of the connection, in milliseconds since 1970. */
  readonly at: number;
}

/** Maximum time for a peer to acknowledge an announcement. */
const ANNOUNCEMENT_TIMEOUT_MS = 3000;
const MAX_ATTEMPTS = 5;
const RETRY_MS = 1000;
/** Connections stored for returning peers. Half-open counterparts of older connections are closed by their own timeout. */
const MAX_RECENT = 20_000;
const MAX_AWAY_PEERS = 1024;
/** Concurrent announcements to a returning peer. */
const MAX_CONCURRENT = 16;
/** Maximum time for which a peer may have missed announcements before its departure was noticed. */
const UNNOTICED_DEPARTURE_MS = PEER_SILENCE_MS + ANNOUNCEMENT_TIMEOUT_MS;
/** Maximum age of connections announced to a new peer. Older half-open connections have been closed. */
const NEW_PEER_MS = 40_000;
const NOTHING = new Uint8Array();

export class MovedProviders {
  readonly #options: MovedProvidersOptions;
  readonly #recent = new BoundedMap<ProviderId, Connection>(MAX_RECENT);
  /** Departed peers, with the time since when announcements may have been missed, in milliseconds since 1970. */
  readonly #awaySince = new BoundedMap<string, number>(MAX_AWAY_PEERS);

  constructor(options: MovedProvidersOptions) {
    this.#options = options;
  }

  /** Announces a new connection to all peers. */
  announce({ registration, sessionId }: ProviderSnapshot): void {
    const { providerId } = registration.identity;
    const connection = { providerId, sessionId, at: this.#options.rules.now() };
    this.#recent.set(providerId, connection);
    for (const { id } of this.#options.peers()) void this.#announceTo(id, connection);
  }

  /** Call when a peer has left or is unreachable. */
  peerLeft(peerId: string): void {
    // Keeps an earlier time: the peer left again before receiving all announcements.
    if (!this.#awaySince.has(peerId)) this.#awaySince.set(peerId, this.#options.rules.now() - UNNOTICED_DEPARTURE_MS);
  }

  /** Announces the connections that a new or returning peer may have missed. */
  async peerJoined(peerId: string): Promise<void> {
    const since = this.#awaySince.get(peerId) ?? this.#options.rules.now() - NEW_PEER_MS;
    const missed = [...this.#recent.values()].filter(({ at }) => at >= since);
    for (let start = 0; start < missed.length; start += MAX_CONCURRENT) {
      const batch = missed.slice(start, start + MAX_CONCURRENT);
      await Promise.all(batch.map((connection) => this.#announceTo(peerId, connection)));
    }
    if (this.#options.peer(peerId) !== null) this.#awaySince.delete(peerId);
  }

  /**
   * Handles a peer's announcement: closes the connection here if the provider signed a later challenge at the peer.
   *
   * Compares times signed by the provider, so that peers cannot end connections by false announcements.
   */
  async announced(peer: Peer, payload: Uint8Array): Promise<Uint8Array> {
    const { registry, rules } = this.#options;
    const request = parseDescribeRequest(payload);
    const own = request === null ? null : registry.snapshot(request.provider_id);
    if (request === null || own === null || own.lastChallenge === null) return NOTHING;
    const verified = await requestDescription(peer, request, rules);
    const isLater = verified !== null && verified.challengedAt > issuedAt(own.lastChallenge.statement);
    if (isLater && registry.snapshot(request.provider_id)?.sessionId === own.sessionId)
      registry.placement.replacedElsewhere(request.provider_id);
    return NOTHING;
  }

  /** Repeats a failed announcement while the peer is live and the connection lasts. */
  async #announceTo(peerId: string, { providerId, sessionId }: Connection): Promise<void> {
    const { registry, peer: peerOf, retryMs = RETRY_MS } = this.#options;
    const payload = encodeMessage({ provider_id: providerId, session_id: sessionId });
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      if (attempt > 0) await delay(retryMs, undefined, { ref: false });
      const peer = peerOf(peerId);
      if (peer === null || registry.snapshot(providerId)?.sessionId !== sessionId) return;
      const isDelivered = await peer.request('joined', payload, ANNOUNCEMENT_TIMEOUT_MS).then(
        () => true,
        () => false,
      );
      if (isDelivered) return;
    }
  }
}

/** Signed time of a verified challenge answer, in milliseconds on the provider's clock. */
function issuedAt({ payload }: SignedStatement): number {
  return (JSON.parse(fromUtf8(fromBase64(payload))) as { issued_at: number }).issued_at;
}
