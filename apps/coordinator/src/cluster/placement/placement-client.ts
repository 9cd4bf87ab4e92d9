/**
 * `PlacementClient`: requests slots from peers for `ClusterPlacements`, and verifies the providers in the replies.
 *
 * The counterpart at the peer is `PlacementServer`. In this file, a provider's owner is the coordinator that holds its connection;
 * only `excluded_owners` are accounts.
 */
import type { ProviderId } from '@inference/protocol';
import { extractPrefixes, meetsTrustFloor, offerTraits, type ProviderFilter, passesFilter } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { NotPlacedReason, Placed, Placement, SlotRequest } from '../../inference/queue/request-queue.js';
import type { SerialClaimant } from '../../providers/placement/placement-service.js';
import { encodeMessage } from '../json-message.js';
import type { Peer, PeerStream } from '../peer.js';
import {
  MAX_EXCLUDED,
  MAX_PREFIXES,
  type OwnerMessage,
  type PlacedMessage,
  type PlacementRequestMessage,
  type ProviderState,
  parseClaimants,
  parseOwnerMessage,
} from './placement-messages.js';
import { type DescriptionRules, requestDescription } from './provider-description.js';
import { refused } from './refusals.js';
import { RemoteProvider } from './remote-provider.js';
import { RemoteSlot } from './remote-slot.js';

interface PlacementClientOptions {
  /** Peer by id. Null: not live. */
  readonly findPeer: (id: string) => Peer | null;
  readonly rules: DescriptionRules;
  /** Called with the outcome of each placement request, for metrics. `unverified`: the provider's evidence was rejected. */
  readonly onOutcome: (outcome: 'placed' | 'busy' | 'refused' | 'lost' | 'unverified') => void;
  /** Called before each request. The result is called with the current digest of the model, if a refusal contains one. */
  readonly digestReceiver: (peerId: string, model: string) => (digest: string) => void;
  readonly now: () => number;
}

/** Maximum time for a peer's reply, in addition to the wait in its queue. */
const REPLY_TIMEOUT_MS = 3000;
const MAX_REMOTE_PROVIDERS = 100_000;
/** Maximum delay of `setTimeout`. A timer with a longer delay fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class PlacementClient {
  readonly #options: PlacementClientOptions;
  /** Verified providers. Key: {@link connectionKey}. All jobs of a connection share one object. */
  readonly #byConnection = new BoundedMap<string, RemoteProvider>(MAX_REMOTE_PROVIDERS);
  readonly #byProvider = new BoundedMap<ProviderId, RemoteProvider>(MAX_REMOTE_PROVIDERS);

  constructor(options: PlacementClientOptions) {
    this.#options = options;
  }

  /** Id of the coordinator with the newest known connection of the provider. Null: unknown. */
  ownerOf(providerId: ProviderId): string | null {
    return this.#byProvider.get(providerId)?.owner ?? null;
  }

  /**
   * Requests a slot from a peer. Resolves to a slot, or to a refusal with the peer's reason or one of these:
   *
   * `timeout`: no slot was free. `none_routable`: no live peer, no valid reply, or the provider was not verified, or was lost
   * meanwhile. `aborted`: `signal` was aborted.
   *
   * @param onReply Called when the first valid message arrives, before the provider is verified.
   */
  async ask(
    peerId: string,
    request: SlotRequest,
    waitMs: number,
    signal: AbortSignal | null,
    onReply: () => void = () => {},
  ): Promise<Placement> {
    const { findPeer, onOutcome, digestReceiver } = this.#options;
    const peer = findPeer(peerId);
    if (peer === null) return refused('none_routable');
    const onDigest = digestReceiver(peerId, request.model);
    const stream = peer.openStream('placement', encodeMessage(requestMessage(request, waitMs)));
    const message = await firstReply(stream, waitMs + REPLY_TIMEOUT_MS, signal);
    if (message === null) {
      onOutcome('lost');
      return refused(signal?.aborted === true ? 'aborted' : 'none_routable');
    }
    onReply();
    if (message.type !== 'placed') {
      if (message.type === 'refused' && message.digest !== undefined) onDigest(message.digest);
      onOutcome(message.type === 'refused' && message.reason === 'busy' ? 'busy' : 'refused');
      stream.close();
      return message.type === 'refused' ? refused(reasonOf(message), message.retry_after_ms) : refused('none_routable');
    }
    const provider = await this.#selectedProvider(peer, request, message);
    if (provider === null || stream.isClosed || signal?.aborted === true) {
      onOutcome(provider === null ? 'unverified' : 'lost');
      stream.close();
      return refused(signal?.aborted === true ? 'aborted' : 'none_routable');
    }
    onOutcome('placed');
    const slot = new RemoteSlot(provider, stream);
    stream.listen(slot);
    return { kind: 'placed', slot, estimate: message.estimate, why: message.why as Placed['why'] };
  }

  /** Providers of a peer that claim a serial number. Empty without a valid reply. */
  async claimants(peerId: string, serialNumber: string): Promise<readonly SerialClaimant[]> {
    const peer = this.#options.findPeer(peerId);
    if (peer === null) return [];
    const answer = await peer.request('claimants', Buffer.from(serialNumber), REPLY_TIMEOUT_MS).catch(() => null);
    return answer === null ? [] : (parseClaimants(answer) ?? []);
  }

  /** The verified provider of a placement. Null: its evidence was rejected, or the provider does not fit the request. */
  async #selectedProvider(peer: Peer, request: SlotRequest, message: PlacedMessage): Promise<RemoteProvider | null> {
    // Checked here too: a peer may be faulty, and one of an earlier version ignores candidates and filters.
    const { provider_id: providerId } = message.provider;
    if (request.exclude.has(providerId)) return null;
    if (request.candidates?.has(providerId) === false || (request.providerId ?? providerId) !== providerId) return null;
    // If the id alone excludes the provider, no description needs to be requested.
    if (!passes(request, { ...UNDESCRIBED, providerId }, message)) return null;
    const provider = await this.#remoteProvider(peer, message);
    if (provider === null || !meetsTrustFloor(provider.trustLevel, request.trustFloor)) return null;
    const facts = factsOf(provider);
    return (request.providerSerial ?? facts.serialNumber) === facts.serialNumber && passes(request, facts, message) ? provider : null;
  }

  /** Verifies the provider of a placement, or returns the cached one if its evidence is still sufficient. Null: not verified. */
  async #remoteProvider(peer: Peer, { provider: state }: PlacedMessage): Promise<RemoteProvider | null> {
    const connection = connectionKey(peer, state);
    const cached = this.#byConnection.get(connection);
    if (cached?.covers(state) && !cached.mayProveMore(state)) {
      cached.update(state);
      return cached;
    }
    cached?.markRechecked();
    const { provider_id, session_id } = state;
    const verified = await requestDescription(peer, { provider_id, session_id }, this.#options.rules);
    // A concurrent placement on the connection may have stored the provider.
    const known = this.#byConnection.get(connection);
    if (verified === null || verified.key.keyId !== state.key_id) {
      if (!known?.covers(state)) return null;
      known.update(state);
      return known;
    }
    if (known !== undefined) {
      known.update(state, verified);
      this.#updateNewest(state.provider_id, known);
      return known;
    }
    const provider = new RemoteProvider(peer, state, verified, this.#options.now);
    this.#byConnection.set(connection, provider);
    this.#updateNewest(state.provider_id, provider);
    return provider;
  }

  /**
   * Makes a connection the newest of its provider, if the provider signed a challenge there later than on the known one.
   *
   * A peer may replay the description of an ended session, so the order of arrival proves nothing.
   */
  #updateNewest(providerId: ProviderId, provider: RemoteProvider): void {
    const newest = this.#byProvider.get(providerId);
    // A peer may replay the description of a session that another peer owns. A session has one owner, so the first one stays.
    if (newest?.sessionId === provider.sessionId) return;
    if (newest !== undefined && newest.challengedAt >= provider.challengedAt) {
      provider.isReplaced = true;
      return;
    }
    if (newest !== undefined) newest.isReplaced = true;
    provider.isReplaced = false;
    this.#byProvider.set(providerId, provider);
  }
}

/** The key contains three ids, so that one peer cannot reuse the session id of another peer's or provider's connection. */
function connectionKey(peer: Peer, { provider_id, session_id }: ProviderState): string {
  return JSON.stringify([peer.id, provider_id, session_id]);
}

type FilteredFacts = Parameters<typeof passesFilter>[1];

/** Placeholder for an unknown description. Only filters by the provider's id or offer can reject it. */
const UNDESCRIBED: Omit<FilteredFacts, 'providerId'> = { serialNumber: '', servesFallbackModels: true, servesChoices: true };

function factsOf({ registration: { identity, servesFallbackModels, servesChoices } }: RemoteProvider): FilteredFacts {
  return { providerId: identity.providerId, serialNumber: identity.attestation.serial_number, servesFallbackModels, servesChoices };
}

function passes({ filter = null }: SlotRequest, facts: FilteredFacts, { provider: { offer } }: PlacedMessage): boolean {
  return filter === null || passesFilter(filter, facts, offerTraits(offer));
}

function reasonOf({ reason, lacks_vision }: OwnerMessage & { readonly type: 'refused' }): NotPlacedReason {
  if (reason === 'busy') return 'timeout';
  return reason === 'no_such_serial' && lacks_vision === true ? 'no_vision' : reason;
}

/** First message of the owning coordinator. Null: no message in time, a malformed message, or the stream ended. */
function firstReply(stream: PeerStream, timeoutMs: number, signal: AbortSignal | null): Promise<OwnerMessage | null> {
  return new Promise((resolve) => {
    const finish = (reply: OwnerMessage | null): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      resolve(reply);
    };
    const abort = (): void => {
      stream.close();
      finish(null);
    };
    const timer = setTimeout(abort, Math.min(timeoutMs, MAX_TIMER_MS));
    signal?.addEventListener('abort', abort);
    stream.listen({
      message: (bytes, isText) => {
        const message = isText ? parseOwnerMessage(bytes) : null;
        if (message === null) {
          stream.abort('bad_message');
          finish(null);
        } else finish(message);
      },
      control: () => {},
      drained: () => {},
      closed: () => finish(null),
    });
    if (signal?.aborted === true) abort();
  });
}

function requestMessage(request: SlotRequest, waitMs: number): PlacementRequestMessage {
  const { work, image = null, candidates = null, filter = null, sort = null } = request;
  return {
    model: request.model,
    account_id: request.accountId,
    provider_serial: request.providerSerial,
    provider_id: request.providerId ?? null,
    ...(candidates === null ? {} : { candidates: [...candidates] }),
    ...(filter === null ? {} : { filter: filterMessage(filter) }),
    ...(sort === null ? {} : { sort }),
    exclude: [...request.exclude].slice(-MAX_EXCLUDED),
    excluded_owners: [...(request.excludedOwners ?? [])].slice(-MAX_EXCLUDED),
    trust_floor: request.trustFloor,
    own_floor: request.hasClientFloor ?? false,
    prompt_tokens: work.promptTokens,
    completion_tokens: work.completionTokens,
    prefixes: [...extractPrefixes(request.promptPrefixes, MAX_PREFIXES)],
    revocable: request.revocable ?? false,
    retried: request.retried ?? false,
    loaded_only: request.loadedOnly ?? false,
    idle_only: request.idleOnly ?? false,
    wait_ms: Math.max(0, waitMs),
    image: image === null ? null : { count: image.count, size: image.size, pixels: image.pixels },
  };
}

function filterMessage({ ignoredIds, ignoredSerials, quantizations, servesFallbackModels, servesChoices, images }: ProviderFilter) {
  return {
    ignored_ids: [...ignoredIds],
    ignored_serials: [...ignoredSerials],
    quantizations: quantizations === null ? null : [...quantizations],
    serves_fallback_models: servesFallbackModels,
    serves_choices: servesChoices,
    ...(images === 0 ? {} : { images }),
  };
}
