/**
 * `ClusterPlacements`: places requests on providers of the whole cluster.
 *
 * Asks coordinators whose digests (summaries of a model) show a free slot, one after the other. If none gives one, the request waits
 * in several queues, here and at peers. The first slot wins. An owner in this file is the coordinator that holds a provider's connection.
 */
import { chooseOwner, MAX_QUEUE_OWNERS, namesProvider, type OwnerRequest, selectsProviders } from '@inference/scheduler';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { type Placements, type ResolvedSerial, resolvedProvider } from '../../inference/placements.js';
import type { Placed, Placement, RequestQueue, SlotRequest } from '../../inference/queue/request-queue.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { Membership } from '../membership/membership.js';
import type { PlacementClient } from './placement-client.js';
import type { PrefixHints } from './prefix-hints.js';
import { publishedModel } from './published-models.js';
import { QueueWait } from './queue-wait.js';
import { refused } from './refusals.js';

interface ClusterPlacementsOptions {
  /** Id of this coordinator. */
  readonly self: string;
  readonly requestQueue: RequestQueue;
  readonly registry: ProviderRegistry;
  readonly membership: Membership;
  readonly client: PlacementClient;
  readonly prefixes: Pick<PrefixHints, 'find'>;
  readonly now: () => number;
  /** Random numbers in [0, 1). */
  readonly random: () => number;
}

/** Maximum coordinators asked in one search for a free slot or an idle provider. */
const MAX_CONTACTED_COORDINATORS = 4;
/** Maximum age of this coordinator's own digest. Older ones are computed again before a choice. */
const OWN_DIGEST_MAX_AGE_MS = 50;
const MAX_OWN_DIGESTS = 100_000;

export class ClusterPlacements implements Placements {
  readonly #options: ClusterPlacementsOptions;
  /** Callbacks of the waiting requests, called with the models whose digests have changed. */
  readonly #waiting = new Set<(models: ReadonlySet<string>) => void>();
  /** When this coordinator's own digest was computed, by model id. */
  readonly #ownDigestAt = new BoundedMap<string, number>(MAX_OWN_DIGESTS);
  #sequence = 0;

  constructor(options: ClusterPlacementsOptions) {
    this.#options = options;
  }

  place(request: SlotRequest, waitMs: number, signal: AbortSignal): Placement | Promise<Placement> {
    if (!this.#isServedByPeers(request)) return this.#options.requestQueue.place(request, waitMs, signal);
    return this.#placeAnywhere(request, waitMs, signal);
  }

  hasIdleProvider(request: SlotRequest): boolean {
    return this.#options.requestQueue.hasIdleProvider(request) || (!selectsProviders(request) && this.#choosePeer(request) !== null);
  }

  placeOnIdleProvider(request: SlotRequest): Placed | null | Promise<Placed | null> {
    const local = this.#options.requestQueue.placeOnIdleProvider(request);
    if (local !== null) return local;
    // A second attempt would need the named provider again.
    if (namesProvider(request)) return null;
    if (selectsProviders(request)) return this.#idleCandidateAtPeers(request);
    const peerId = this.#choosePeer(request);
    if (peerId === null) return null;
    return this.#options.client
      .ask(peerId, { ...request, idleOnly: true }, 0, null)
      .then((placement) => (placement.kind === 'placed' ? placement : null));
  }

  /** Asks peers one after the other, because digests do not show where a candidate provider is connected. */
  async #idleCandidateAtPeers(request: SlotRequest): Promise<Placed | null> {
    const { membership, client } = this.#options;
    if (!this.#isServedByPeers(request)) return null;
    for (const { id } of membership.peers.slice(0, MAX_CONTACTED_COORDINATORS)) {
      const placement = await client.ask(id, { ...request, idleOnly: true }, 0, null);
      if (placement.kind === 'placed') return placement;
    }
    return null;
  }

  served(model: string, ms: number): void {
    this.#options.requestQueue.served(model, ms);
  }

  async resolveSerial(serialNumber: string): Promise<ResolvedSerial> {
    const { client, registry, membership } = this.#options;
    const answers = await Promise.all(membership.peers.map(({ id }) => client.claimants(id, serialNumber)));
    const claimants = [registry.placement.claimants(serialNumber), ...answers].flat();
    // A provider that changes its coordinator may be connected to both for a moment.
    const distinct = new Map(claimants.map((claimant) => [claimant.providerId, claimant]));
    return resolvedProvider([...distinct.values()]);
  }

  /** Call when digests of peers have changed. Waiting requests for these models try again to get a free slot at a peer. */
  digestsChanged(models: readonly { readonly id: string }[]): void {
    const ids = new Set(models.map(({ id }) => id));
    for (const retry of [...this.#waiting]) retry(ids);
  }

  #isServedByPeers(request: SlotRequest): boolean {
    const { membership, registry } = this.#options;
    const { providerId = null, candidates = null, model } = request;
    if (candidates !== null) return membership.peers.length > 0 && [...candidates].some((id) => !registry.isConnected(id));
    if (providerId !== null) return !registry.isConnected(providerId) && membership.peers.length > 0;
    return membership.isServedByPeers(model);
  }

  async #placeAnywhere(request: SlotRequest, waitMs: number, signal: AbortSignal): Promise<Placement> {
    if (signal.aborted) return refused('aborted');
    const { membership } = this.#options;
    const contacted = new Set<string>();
    // Digests do not show which coordinator a named provider or a candidate is connected to.
    const canChooseByDigest = !namesProvider(request) && (request.candidates ?? null) === null;
    const placed = canChooseByDigest ? await this.#placeNow(request, signal, contacted) : null;
    if (placed !== null) return placed;
    if (signal.aborted) return refused('aborted');
    // Digests do not show which providers match the request's filter, so the request queues at all peers.
    if (selectsProviders(request)) {
      const peers = membership.peers.map(({ id }) => id);
      return this.#wait(request, waitMs, signal, peers);
    }
    const choice = this.#choose(request, contacted);
    // A digest without a suitable provider may be outdated. So the request queues at the peers, which refuse it if they must.
    const owners = choice.kind === 'queue' ? choice.owners : this.#peersServing(request.model);
    return this.#wait(request, waitMs, signal, owners);
  }

  /** Up to {@link MAX_QUEUE_OWNERS} peers that serve the model, with or without free slots. */
  #peersServing(model: string): string[] {
    const owners: string[] = [];
    for (const [owner] of this.#options.membership.digestsAtPeers(model)) if (owners.push(owner) === MAX_QUEUE_OWNERS) break;
    return owners;
  }

  /**
   * Gets a free slot here or at a peer without waiting. Null: none is free.
   *
   * @param contacted Coordinators to skip. Each asked coordinator is added.
   */
  async #placeNow(request: SlotRequest, signal: AbortSignal, contacted: Set<string>): Promise<Placed | null> {
    const { self, client, requestQueue, membership } = this.#options;
    while (contacted.size < MAX_CONTACTED_COORDINATORS && !signal.aborted) {
      const choice = this.#choose(request, contacted);
      if (choice.kind !== 'ask') return null;
      contacted.add(choice.owner);
      const { loadedOnly = false } = request;
      const narrowed = { ...request, loadedOnly: loadedOnly || choice.loadedOnly };
      const onReply = membership.digests.markRequested(choice.owner, request.model, choice.classIndex);
      const placement =
        choice.owner === self ? requestQueue.placeNow(narrowed) : await client.ask(choice.owner, narrowed, 0, signal, onReply);
      // `ask` calls `onReply` only if a reply arrives. A second call has no effect.
      onReply();
      if (placement?.kind === 'placed') return placement;
    }
    return null;
  }

  /** Chooses a coordinator by the digests of all, including this coordinator's own, which is refreshed first. */
  #choose(request: SlotRequest, excludedOwners: ReadonlySet<string>) {
    const { membership, self, now, random } = this.#options;
    this.#refreshOwnDigest(request.model);
    return chooseOwner(membership.digests.of(request.model), this.#ownerRequest(request, excludedOwners), self, now(), random);
  }

  /** Id of a peer whose digest shows a free slot; null: none. */
  #choosePeer(request: SlotRequest): string | null {
    const choice = this.#choose(request, new Set([this.#options.self]));
    return choice.kind === 'ask' ? choice.owner : null;
  }

  #ownerRequest(request: SlotRequest, excludedOwners: ReadonlySet<string>): OwnerRequest {
    const { client, prefixes, registry, self } = this.#options;
    const { work, image = null, trustFloor, exclude, promptPrefixes, sort = null } = request;
    const excludedCountByOwner = new Map<string, number>();
    for (const providerId of exclude) {
      const owner = registry.isConnected(providerId) ? self : client.ownerOf(providerId);
      if (owner !== null) excludedCountByOwner.set(owner, (excludedCountByOwner.get(owner) ?? 0) + 1);
    }
    return {
      work,
      // Unknown.
      contextTokens: 0,
      imageSize: image === null ? null : image.pixels,
      trustFloor,
      excludedOwners,
      excludedProviders: excludedCountByOwner,
      sort,
      prefix: prefixes.find(promptPrefixes),
    };
  }

  #refreshOwnDigest(model: string): void {
    const { self, membership, registry, requestQueue, now } = this.#options;
    const at = this.#ownDigestAt.get(model);
    if (at !== undefined && Math.abs(now() - at) < OWN_DIGEST_MAX_AGE_MS) return;
    this.#ownDigestAt.set(model, now());
    const own = publishedModel(model, registry, requestQueue);
    if (own === null) membership.digests.remove(self, model);
    // Infinity: the own digest never becomes outdated through silence.
    else membership.digests.update(self, model, own.digest, ++this.#sequence, Number.POSITIVE_INFINITY);
  }

  /** Waits in the queues of this coordinator and of `owners`. The first slot wins; later ones are released. */
  async #wait(request: SlotRequest, waitMs: number, signal: AbortSignal, owners: readonly string[]): Promise<Placement> {
    const { client, requestQueue, now, self } = this.#options;
    const endWait = requestQueue.countWait(request.model);
    const wait = new QueueWait({
      now,
      // Excludes this coordinator, because the request must not overtake others in its queue.
      placeNow: (waitSignal) => this.#placeNow(request, waitSignal, new Set([self])),
    });
    const retry = (models: ReadonlySet<string>): void => {
      if (models.has(request.model) && !selectsProviders(request)) wait.retry();
    };
    this.#waiting.add(retry);
    try {
      return await wait.run(signal, [
        (waitSignal) => requestQueue.place({ ...request, isCounted: true }, waitMs, waitSignal),
        ...owners.map((owner) => (waitSignal: AbortSignal) => client.ask(owner, request, waitMs, waitSignal)),
      ]);
    } finally {
      endWait();
      this.#waiting.delete(retry);
    }
  }
}
