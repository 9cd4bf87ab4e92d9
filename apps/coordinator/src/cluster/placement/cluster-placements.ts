/**
 * Places jobs on the providers of all coordinators. Digests of the peers say whom to ask; only the coordinator that holds a provider's
 * connection assigns its slots. While all are full, a request queues here and at two peers, and takes the first slot.
 */
import type { ImageOffer, ModelOffer, ModelType, ProviderId } from '@inference/protocol';
import { chooseOwner, MAX_QUEUE_OWNERS, type ModelDigest, namesProvider, type OwnerRequest } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { type NetworkModels, type Placements, type ResolvedSerial, resolvedProvider } from '../../inference/placements.js';
import type { NotPlacedReason, Placed, Placement, RequestQueue, SlotRequest } from '../../inference/queue/request-queue.js';
import type { SerialClaimant } from '../../providers/placement/placement-service.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { Refusal } from '../../providers/session/refusal.js';
import type { Membership } from '../membership/membership.js';
import type { Peer, PeerStream } from '../peer.js';
import {
  encodeMessage,
  MAX_PREFIXES,
  type OwnerMessage,
  type PlacedMessage,
  type PlacementRequestMessage,
  parseClaimants,
  parseOwnerMessage,
} from './placement-messages.js';
import { type DescriptionRules, parseDescription, type VerifiedProvider, verifyDescription } from './provider-description.js';
import { publishedModel } from './published-models.js';
import { RemoteProvider } from './remote-provider.js';
import { RemoteSlot } from './remote-slot.js';

interface ClusterPlacementsOptions {
  readonly self: string;
  readonly requestQueue: RequestQueue;
  readonly registry: ProviderRegistry;
  readonly membership: Membership;
  /** A live peer; null: it has left. */
  readonly peer: (id: string) => Peer | null;
  readonly rules: DescriptionRules;
  /** Counts how asking peers ended, for metrics. */
  readonly onAsked: (outcome: 'placed' | 'busy' | 'refused' | 'lost' | 'unverified') => void;
  readonly now: () => number;
  /** Numbers in [0, 1). */
  readonly random: () => number;
}

type Refused = Placement & { readonly kind: 'refused' };

/** Peers asked for one placement before the request queues. */
const MAX_ASKS = 4;
/** Maximum time for a peer's reply, in milliseconds, beyond the wait in its queue. */
const REPLY_MS = 3000;
/** Lifetime of the own digest in the choice, in milliseconds. */
const OWN_DIGEST_MS = 50;
/** Minimum time between two looks at changed digests by one waiting request, in milliseconds. */
const RETRY_MS = 100;
const MAX_REMOTE_PROVIDERS = 100_000;

/** The first that applies is reported when every owner refuses. */
const REFUSAL_ORDER: readonly NotPlacedReason[] = [
  'timeout',
  'hopeless',
  'queue_full',
  'below_trust_floor',
  'all_failed',
  'no_such_serial',
  'none_routable',
  'aborted',
];

export class ClusterPlacements implements Placements, NetworkModels {
  readonly #options: ClusterPlacementsOptions;
  /** By session id, so that references to one connection are equal. */
  readonly #remote = new BoundedMap<string, RemoteProvider>(MAX_REMOTE_PROVIDERS);
  /** The newest connection of each provider. */
  readonly #newest = new BoundedMap<ProviderId, RemoteProvider>(MAX_REMOTE_PROVIDERS);
  readonly #waiting = new Set<(models: ReadonlySet<string>) => void>();
  readonly #capacityListeners = new Set<(models: readonly ModelOffer[]) => void>();
  readonly #ownDigestAt = new BoundedMap<string, number>(MAX_REMOTE_PROVIDERS);
  #sequence = 0;

  constructor(options: ClusterPlacementsOptions) {
    this.#options = options;
  }

  place(request: SlotRequest, waitMs: number, signal: AbortSignal): Placement | Promise<Placement> {
    if (!this.#isServedByPeers(request)) return this.#options.requestQueue.place(request, waitMs, signal);
    return this.#placeAnywhere(request, waitMs, signal);
  }

  hasIdleProvider(request: SlotRequest): boolean {
    return this.#options.requestQueue.hasIdleProvider(request) || (!namesProvider(request) && this.#choosePeer(request) !== null);
  }

  placeOnIdleProvider(request: SlotRequest): Placed | null | Promise<Placed | null> {
    const local = this.#options.requestQueue.placeOnIdleProvider(request);
    if (local !== null || namesProvider(request)) return local;
    const peerId = this.#choosePeer(request);
    if (peerId === null) return null;
    return this.#ask(peerId, { ...request, idleOnly: true }, 0, new AbortController().signal).then((placement) =>
      placement.kind === 'placed' ? placement : null,
    );
  }

  served(model: string, ms: number): void {
    this.#options.requestQueue.served(model, ms);
  }

  async resolveSerial(serialNumber: string): Promise<ResolvedSerial> {
    const { registry, membership } = this.#options;
    const payload = Buffer.from(serialNumber);
    const answers = membership.peers.map(async ({ id }): Promise<readonly SerialClaimant[]> => {
      const answer = await this.#options
        .peer(id)
        ?.request('claimants', payload, REPLY_MS)
        .catch(() => null);
      return answer == null ? [] : (parseClaimants(answer) ?? []);
    });
    const claimants = [registry.placement.claimants(serialNumber), ...(await Promise.all(answers))].flat();
    // An agent that moves may be known to two coordinators for a moment.
    const distinct = new Map(claimants.map((claimant) => [claimant.providerId, claimant]));
    return resolvedProvider([...distinct.values()]);
  }

  /** Digests of peers changed. */
  digestsChanged(models: readonly { readonly id: string }[]): void {
    const ids = new Set(models.map(({ id }) => id));
    for (const look of [...this.#waiting]) look(ids);
    const offers = models.map(({ id }) => ({ id }) as ModelOffer);
    for (const listener of this.#capacityListeners) listener(offers);
  }

  /** Providers of peers that serve the model. */
  servingAtPeers(model: string): number {
    let serving = 0;
    for (const { digest } of this.#digests(model).values()) serving += digest.serving;
    return serving;
  }

  serves(model: string): boolean {
    return this.#options.registry.models.serves(model) || this.#digests(model).size > 0;
  }

  isOfType(model: string, type: ModelType): boolean {
    if (this.#options.registry.models.isOfType(model, type)) return true;
    for (const published of this.#options.membership.servedBy(model)) if (published.type === type) return true;
    return false;
  }

  listedNames(): readonly string[] {
    return [...new Set([...this.#options.registry.models.listedNames(), ...this.#options.membership.models()])];
  }

  contextLength(model: string, named: Parameters<NetworkModels['contextLength']>[1]): number | null {
    let longest = this.#options.registry.models.contextLength(model, named);
    // A named provider of a peer has at most the longest context there.
    if (longest !== null && named !== null && namesProvider(named)) return longest;
    for (const { digest } of this.#digests(model).values()) longest = Math.max(longest ?? 0, digest.maxContextTokens ?? 0);
    return longest;
  }

  imageOffers(): ReadonlyMap<string, readonly ImageOffer[]> {
    const offers = new Map(this.#options.registry.models.imageOffers());
    for (const model of this.#options.membership.models()) {
      const ofPeers = [...this.#options.membership.servedBy(model)].flatMap(({ type, images }) => (type === 'image' ? images : []));
      if (ofPeers.length > 0) offers.set(model, [...(offers.get(model) ?? []), ...ofPeers]);
    }
    return offers;
  }

  onCapacity(listener: (models: readonly ModelOffer[]) => void): () => void {
    this.#capacityListeners.add(listener);
    const stop = this.#options.registry.models.onCapacity(listener);
    return () => {
      stop();
      this.#capacityListeners.delete(listener);
    };
  }

  /** Digests of live peers that serve the model. */
  #digests(model: string): ReadonlyMap<string, { readonly digest: ModelDigest }> {
    const { membership, self } = this.#options;
    return new Map([...membership.digests.of(model)].filter(([owner]) => owner !== self && membership.isLive(owner)));
  }

  #isServedByPeers(request: SlotRequest): boolean {
    const { providerId = null, model } = request;
    if (providerId !== null) return this.#options.registry.snapshot(providerId) === null && this.#options.membership.peers.length > 0;
    return this.#digests(model).size > 0;
  }

  async #placeAnywhere(request: SlotRequest, waitMs: number, signal: AbortSignal): Promise<Placement> {
    if (signal.aborted) return refused('aborted');
    if (namesProvider(request))
      return this.#wait(
        request,
        waitMs,
        signal,
        this.#options.membership.peers.map(({ id }) => id),
      );
    const asked = new Set<string>();
    const placed = await this.#placeNow(request, signal, asked);
    if (placed !== null) return placed;
    if (signal.aborted) return refused('aborted');
    const choice = this.#choose(request, asked);
    // Digests may be a second old, so the owners themselves say that nobody is left.
    const owners = choice.kind === 'queue' ? choice.owners : [...this.#digests(request.model).keys()].slice(0, MAX_QUEUE_OWNERS);
    return this.#wait(request, waitMs, signal, owners);
  }

  /** A slot at once, here or at a peer; null: all are full. `asked`: owners without a slot. */
  async #placeNow(request: SlotRequest, signal: AbortSignal, asked: Set<string>): Promise<Placed | null> {
    const { self, requestQueue, membership } = this.#options;
    while (asked.size < MAX_ASKS && !signal.aborted) {
      const choice = this.#choose(request, asked);
      if (choice.kind !== 'ask') return null;
      asked.add(choice.owner);
      const { loadedOnly = false } = request;
      const demand = { ...request, loadedOnly: loadedOnly || choice.loadedOnly };
      const answered = membership.digests.ask(choice.owner, request.model, choice.classIndex);
      const placement = choice.owner === self ? requestQueue.placeNow(demand) : await this.#ask(choice.owner, demand, 0, signal);
      answered();
      if (placement?.kind === 'placed') return placement;
    }
    return null;
  }

  #choose(request: SlotRequest, excludedOwners: ReadonlySet<string>) {
    const { membership, self, now, random } = this.#options;
    this.#refreshOwnDigest(request.model);
    return chooseOwner(membership.digests.of(request.model), this.#ownerRequest(request, excludedOwners), self, now(), random);
  }

  /** A peer with a free slot, by its digest; null: none. */
  #choosePeer(request: SlotRequest): string | null {
    const choice = this.#choose(request, new Set([this.#options.self]));
    return choice.kind === 'ask' ? choice.owner : null;
  }

  #ownerRequest({ work, image = null, trustFloor, exclude }: SlotRequest, excludedOwners: ReadonlySet<string>): OwnerRequest {
    const excludedProviders = new Map<string, number>();
    for (const providerId of exclude) {
      const owner = this.#options.registry.snapshot(providerId) === null ? this.#newest.get(providerId)?.owner : this.#options.self;
      if (owner !== undefined) excludedProviders.set(owner, (excludedProviders.get(owner) ?? 0) + 1);
    }
    const imageSize = image === null ? null : image.pixels;
    return { work, contextTokens: 0, imageSize, trustFloor, excludedOwners, excludedProviders, prefix: null };
  }

  #refreshOwnDigest(model: string): void {
    const { self, membership, registry, requestQueue, now } = this.#options;
    const at = this.#ownDigestAt.get(model);
    if (at !== undefined && Math.abs(now() - at) < OWN_DIGEST_MS) return;
    this.#ownDigestAt.set(model, now());
    const own = publishedModel(model, registry, requestQueue);
    if (own === null) membership.digests.remove(self, model);
    else membership.digests.update(self, model, own.digest, ++this.#sequence, Number.POSITIVE_INFINITY);
  }

  /** Queues here and at some peers; the first slot ends the other waits. */
  #wait(request: SlotRequest, waitMs: number, signal: AbortSignal, owners: readonly string[]): Promise<Placement> {
    return new Promise((resolve) => {
      const losers = new AbortController();
      const refusals: Refused[] = [];
      let pending = 0;
      let isOver = false;
      const finish = (placement: Placement): void => {
        isOver = true;
        endWait();
        this.#waiting.delete(look);
        signal.removeEventListener('abort', abort);
        resolve(placement);
        losers.abort();
      };
      const settle = (placement: Placement): void => {
        pending--;
        if (isOver) {
          if (placement.kind === 'placed') placement.slot.release();
          return;
        }
        if (placement.kind === 'placed') finish(placement);
        else {
          refusals.push(placement);
          if (pending === 0) finish(worstRefusal(refusals));
        }
      };
      const start = (placement: Placement | Promise<Placement>): void => {
        pending++;
        if (placement instanceof Promise) void placement.then(settle, () => settle(refused('none_routable')));
        else settle(placement);
      };
      let lastLook = this.#options.now();
      let isLooking = false;
      const look = (models: ReadonlySet<string>): void => {
        const now = this.#options.now();
        if (isLooking || !models.has(request.model) || namesProvider(request) || Math.abs(now - lastLook) < RETRY_MS) return;
        lastLook = now;
        isLooking = true;
        // The own queue serves local providers in its order.
        void this.#placeNow(request, losers.signal, new Set([this.#options.self])).then((placed) => {
          isLooking = false;
          if (placed === null) return;
          if (isOver) placed.slot.release();
          else finish(placed);
        });
      };
      const abort = (): void => {
        if (!isOver) finish(refused('aborted'));
      };
      const endWait = this.#options.requestQueue.countWait(request.model);
      signal.addEventListener('abort', abort);
      this.#waiting.add(look);
      // Counted first, so that an immediate refusal does not end the wait for the others.
      pending++;
      start(this.#options.requestQueue.place({ ...request, isCounted: true }, waitMs, losers.signal));
      for (const owner of owners) if (!isOver) start(this.#ask(owner, request, waitMs, losers.signal));
      pending--;
      if (!isOver && pending === 0) finish(worstRefusal(refusals));
    });
  }

  /** Asks a peer for a slot. Refused as `none_routable` when the peer has none or is gone. */
  async #ask(peerId: string, request: SlotRequest, waitMs: number, signal: AbortSignal): Promise<Placement> {
    const { peer, onAsked } = this.#options;
    const asked = peer(peerId);
    if (asked === null) return refused('none_routable');
    const stream = asked.openStream('placement', encodeMessage(requestMessage(request, waitMs)));
    const message = await firstReply(stream, waitMs + REPLY_MS, signal);
    if (message === null) {
      onAsked('lost');
      return refused(signal.aborted ? 'aborted' : 'none_routable');
    }
    if (message.type !== 'placed') {
      onAsked(message.type === 'refused' && message.reason === 'busy' ? 'busy' : 'refused');
      stream.close();
      const reason = message.type === 'refused' && message.reason !== 'busy' ? message.reason : 'none_routable';
      return refused(reason as NotPlacedReason, message.type === 'refused' ? message.retry_after_ms : null);
    }
    const provider = await this.#remoteProvider(asked, message).catch((error: unknown) => {
      if (error instanceof Refusal) return null;
      throw error;
    });
    if (provider === null || stream.isClosed || signal.aborted) {
      onAsked(provider === null ? 'unverified' : 'lost');
      stream.close();
      return refused(signal.aborted ? 'aborted' : 'none_routable');
    }
    onAsked('placed');
    const slot = new RemoteSlot(provider, stream);
    stream.listen(slot);
    return { kind: 'placed', slot, estimate: message.estimate, why: message.why as Placed['why'] };
  }

  /** The verified provider of a placement; null: its statements do not hold. Throws `Refusal`. */
  async #remoteProvider(peer: Peer, { provider: state }: PlacedMessage): Promise<RemoteProvider | null> {
    const known = this.#remote.get(state.session_id);
    if (known?.covers(state)) {
      known.update(state);
      return known;
    }
    const verified = await this.#describe(peer, state.provider_id, state.session_id);
    if (verified === null || verified.registration.identity.providerId !== state.provider_id) return null;
    if (verified.key.keyId !== state.key_id) return null;
    if (known !== undefined) {
      known.update(state, verified);
      return known;
    }
    const provider = new RemoteProvider(peer, state, verified, this.#options.now);
    this.#remote.set(state.session_id, provider);
    const older = this.#newest.get(state.provider_id);
    if (older !== undefined) older.isReplaced = true;
    this.#newest.set(state.provider_id, provider);
    return provider;
  }

  async #describe(peer: Peer, providerId: ProviderId, sessionId: string): Promise<VerifiedProvider | null> {
    const payload = encodeMessage({ provider_id: providerId, session_id: sessionId });
    const answer = await peer.request('describe', payload, REPLY_MS).catch(() => null);
    const description = answer === null ? null : parseDescription(answer);
    if (description === null || description.session_id !== sessionId) return null;
    return verifyDescription(description, this.#options.rules);
  }
}

/** The first message of the owner; null: the stream ended, or no reply came in time. */
function firstReply(stream: PeerStream, timeoutMs: number, signal: AbortSignal): Promise<OwnerMessage | null> {
  return new Promise((resolve) => {
    const finish = (reply: OwnerMessage | null): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      resolve(reply);
    };
    const abort = (): void => {
      stream.close();
      finish(null);
    };
    const timer = setTimeout(abort, Math.min(timeoutMs, 2 ** 31 - 1));
    signal.addEventListener('abort', abort);
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
    if (signal.aborted) abort();
  });
}

function requestMessage(request: SlotRequest, waitMs: number): PlacementRequestMessage {
  const { work, image = null } = request;
  return {
    model: request.model,
    account_id: request.accountId,
    provider_serial: request.providerSerial,
    provider_id: request.providerId ?? null,
    exclude: [...request.exclude].slice(-256),
    excluded_owners: [...(request.excludedOwners ?? [])].slice(-256),
    trust_floor: request.trustFloor,
    own_floor: request.ownFloor ?? false,
    prompt_tokens: work.promptTokens,
    completion_tokens: work.completionTokens,
    prefixes: request.chain.slice(-MAX_PREFIXES),
    revocable: request.revocable ?? false,
    retried: request.retried ?? false,
    loaded_only: request.loadedOnly ?? false,
    idle_only: request.idleOnly ?? false,
    wait_ms: Math.max(0, waitMs),
    image: image === null ? null : { count: image.count, size: image.size, pixels: image.pixels },
  };
}

function worstRefusal(refusals: readonly Refused[]): Refused {
  const rank = ({ reason }: Refused): number => REFUSAL_ORDER.indexOf(reason);
  const [first, ...others] = [...refusals].sort((a, b) => rank(a) - rank(b) || (a.retryAfterMs ?? 0) - (b.retryAfterMs ?? 0));
  return first ?? others[0] ?? refused('none_routable');
}

function refused(reason: NotPlacedReason, retryAfterMs: number | null = null): Refused {
  return { kind: 'refused', reason, retryAfterMs };
}
