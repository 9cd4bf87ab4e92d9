/**
 * Ends the older of two connections of one provider at different coordinators. An agent that moves may leave a half-open connection
 * behind, which would get jobs until it counts as silent.
 */
import { fromBase64, fromUtf8, type ProviderId, type SignedStatement } from '@inference/protocol';
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
  readonly rules: DescriptionRules;
}

/** Maximum time of an announcement, in milliseconds. */
const MESSAGE_MS = 3000;
const NOTHING = new Uint8Array();

export class MovedProviders {
  readonly #options: MovedProvidersOptions;

  constructor(options: MovedProvidersOptions) {
    this.#options = options;
  }

  /** Announces a new connection to all peers. */
  announce({ registration, sessionId }: ProviderSnapshot): void {
    const payload = encodeMessage({ provider_id: registration.identity.providerId, session_id: sessionId });
    for (const peer of this.#options.peers()) peer.request('joined', payload, MESSAGE_MS).catch(() => {});
  }

  /**
   * Handles a peer's announcement. The peer must show that the provider has signed a later challenge there, so that it cannot end
   * connections of others. Times of both challenges are the provider's own.
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
}

/** Signed time of a verified challenge answer, in milliseconds on the provider's clock. */
function issuedAt({ payload }: SignedStatement): number {
  return (JSON.parse(fromUtf8(fromBase64(payload))) as { issued_at: number }).issued_at;
}
