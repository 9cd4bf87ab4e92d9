/**
 * `MovedProviders`: announces new provider connections to peers. A peer that still has an older connection of the provider closes it.
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
  /** Pause before an announcement is repeated. Default 1 s. */
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
/** Maximum connections stored for peers that join later. Half-open connections that are not announced end by timeout. */
const MAX_RECENT = 20_000;
const MAX_AWAY_PEERS = 1024;
/** Concurrent announcements to a joining peer. */
const MAX_CONCURRENT = 16;
/** Maximum time during which a peer may have missed announcements before its departure was noticed. */
const UNNOTICED_DEPARTURE_MS = PEER_SILENCE_MS + ANNOUNCEMENT_TIMEOUT_MS;
/** Maximum age of connections that are announced to a new peer. Older half-open connections have ended by timeout. */
const NEW_PEER_MS = 40_000;
const NOTHING = new Uint8Array();

export class MovedProviders {
  readonly #options: MovedProvidersOptions;
  /** Newest connection of each provider to this coordinator. */
  readonly #recent = new BoundedMap<ProviderId, Connection>(MAX_RECENT);
  /** For each departed peer, the time from which on it may have missed announcements, in milliseconds since 1970. */
  readonly #awaySince = new BoundedMap<string, number>(MAX_AWAY_PEERS);

  constructor(options: MovedProvidersOptions) {
    this.#options = options;
  }

  announce({ registration, sessionId }: ProviderSnapshot): void {
    const { providerId } = registration.identity;
    const connection = { providerId, sessionId, at: this.#options.rules.now() };
    this.#recent.set(providerId, connection);
    for (const { id } of this.#options.peers()) void this.#announceTo(id, connection);
  }

  peerLeft(peerId: string): void {
    // An earlier time stays: the peer has left again before it received all announcements.
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
   * Compares times that the provider has signed, so that a false announcement of a peer cannot close a connection.
   */
  async receiveAnnouncement(peer: Peer, payload: Uint8Array): Promise<Uint8Array> {
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

  /** Announces a connection, with retries while the peer is live and the connection exists. */
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

/** Time in a verified, signed challenge response, in milliseconds on the provider's clock. */
function issuedAt({ payload }: SignedStatement): number {
  return (JSON.parse(fromUtf8(fromBase64(payload))) as { issued_at: number }).issued_at;
}
