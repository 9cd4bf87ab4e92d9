/** `MovedProviders` ends the older connection of a provider that is connected to two coordinators, often half-open. */
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
  /** Null: the peer is not live. */
  readonly peer: (id: string) => Peer | null;
  readonly rules: DescriptionRules;
  /** Pause before an announcement is repeated, in milliseconds. Default 1 s. */
  readonly retryMs?: number;
}

/** A connection of a provider to this coordinator. */
interface Connection {
  readonly providerId: ProviderId;
  readonly sessionId: string;
  /** Milliseconds. */
  readonly at: number;
}

/** Maximum time of an announcement, in milliseconds. */
const MESSAGE_MS = 3000;
const MAX_ATTEMPTS = 5;
const RETRY_MS = 1000;
/** Connections that a returning peer may have missed. Older ones are dropped first: silence ends their half-open counterparts. */
const MAX_RECENT = 20_000;
const MAX_AWAY_PEERS = 1024;
/** Announcements at a time for a returning peer. */
const MAX_CONCURRENT = 16;
/** Announcements before the departure of a peer was noticed that may not have reached the peer. */
const LEAVING_MS = PEER_SILENCE_MS + MESSAGE_MS;
/** Maximum age of connections announced to a new peer, in milliseconds; older half-open connections are closed already. */
const NEW_PEER_MS = 40_000;
const NOTHING = new Uint8Array();

export class MovedProviders {
  readonly #options: MovedProvidersOptions;
  readonly #recent = new BoundedMap<ProviderId, Connection>(MAX_RECENT);
  /** Peers that have left, with the start of the time whose connections the peer may have missed, in milliseconds. */
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

  /** A peer has left, or is unreachable. */
  peerLeft(peerId: string): void {
    // A peer that leaves again before it has received every announcement still misses the same connections.
    if (!this.#awaySince.has(peerId)) this.#awaySince.set(peerId, this.#options.rules.now() - LEAVING_MS);
  }

  /** Announces to a new or returning peer the connections that it may have missed. */
  async peerJoined(peerId: string): Promise<void> {
    const since = this.#awaySince.get(peerId) ?? this.#options.rules.now() - NEW_PEER_MS;
    const missed = [...this.#recent.values()].filter(({ at }) => at >= since);
    for (let start = 0; start < missed.length; start += MAX_CONCURRENT) {
      const batch = missed.slice(start, start + MAX_CONCURRENT);
      await Promise.all(batch.map((connection) => this.#announceTo(peerId, connection)));
    }
    if (this.#options.peer(peerId) !== null) this.#awaySince.delete(peerId);
  }

  /** Handles a peer's announcement, which must contain a later challenge signed by the provider. Times are the provider's. */
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
      const isDelivered = await peer.request('joined', payload, MESSAGE_MS).then(
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
