/**
 * `Membership`: publishes this coordinator's models in heartbeats, and tracks the other live coordinators (peers) and their models.
 *
 * A heartbeat follows about every second, earlier for changes. It contains the changed models with their digests: summaries of slots,
 * queue and throughput at one coordinator (the digest's `owner`), by which placements choose a coordinator.
 *
 * A peer that missed heartbeats requests all models over its link (the channel between two coordinators). Each process has a random
 * epoch, so a new epoch means that the peer restarted.
 */
import { randomBytes } from 'node:crypto';
import { decodeDigest, type ModelDigest, OwnerDigests, PEER_SILENCE_MS } from '@inference/scheduler';
import {
  CLUSTER_VERSION,
  type DecodedHeartbeat,
  decodeHeartbeat,
  encodeHeartbeat,
  encodeModel,
  type Heartbeat,
  MAX_CHANGES_PER_HEARTBEAT,
  type PublishedModel,
} from './heartbeat.js';
import { MAX_MODELS_PER_PEER, type ModelFacts, PeerModels, removedModel } from './peer-models.js';

/** Part of the NATS transport for messages to all peers. */
export interface Broadcast {
  publish(subject: string, bytes: Uint8Array): void;
  /** Calls `handler` with every message on a matching subject. Returns a function that unsubscribes. */
  subscribe(pattern: string, handler: (subject: string, bytes: Uint8Array) => void): () => void;
}

export interface MembershipEvents {
  joined(peerId: string): void;
  /** Also called when a peer has restarted. `joined` then follows. */
  left(peerId: string): void;
  /** Models that a message of a peer added, updated or removed (digest null). Not called when a peer leaves. */
  changed(models: Heartbeat['models']): void;
  /** A heartbeat's time differs from this clock by more than {@link CLOCK_ALARM_MS}. */
  clockDiffers(peerId: string, ms: number): void;
  /** A heartbeat was malformed or of an unsupported version, and is ignored. */
  refused(peerId: string, refusal: RefusedHeartbeat): void;
}

export type RefusedHeartbeat = Exclude<DecodedHeartbeat, { readonly kind: 'heartbeat' }>;

interface MembershipOptions {
  /** Id of this coordinator. */
  readonly self: string;
  readonly broadcast: Broadcast;
  readonly models: () => Iterable<PublishedModel>;
  /** Count of providers connected here. */
  readonly providers: () => number;
  readonly isDraining: () => boolean;
  /** Requests all models of a peer over its link. Resolves to an encoded heartbeat. */
  readonly requestModels: (peerId: string) => Promise<Uint8Array>;
  readonly events: MembershipEvents;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

interface PeerState {
  epoch: string;
  sequence: number;
  heardAt: number;
  draining: boolean;
  providers: number;
  clockDifferenceMs: number;
  readonly models: PeerModels;
  /** Whether the last request for all models failed. The next heartbeat causes another request. */
  lacksModels: boolean;
}

/** Requests by {@link Membership.refresh} to one peer. */
interface RefreshState {
  /** Start of the last request. */
  startedAt: number;
  /** The next request, not yet sent, which all callers until then share; null: none. */
  next: Promise<void> | null;
}

export interface PeerSummary {
  readonly id: string;
  readonly heardAt: number;
  readonly draining: boolean;
  readonly providers: number;
  readonly models: number;
  /** The peer's clock minus this coordinator's. */
  readonly clockDifferenceMs: number;
}

const HEARTBEAT_MS = 1000;
/** Delay of changes, to limit the traffic. Grows with the number of peers. */
const MIN_CHANGES_DELAY_MS = 250;
const CHANGES_DELAY_MS_PER_PEER = 5;
/** Minimum time from a heartbeat to an extra one for a new peer. Limits the traffic that an unstable peer causes. */
const MIN_GREETING_MS = 100;
/** Minimum time between two requests by `refresh` to one peer. */
const REFRESH_INTERVAL_MS = 1000;
/** Limits the memory that hostile peers can occupy. */
const MAX_PEERS = 1024;
const CLOCK_ALARM_MS = 5000;
/** Clock difference above which a peer is removed. */
const MAX_CLOCK_DIFFERENCE_MS = 120_000;

const subjectOf = (id: string): string => `fleet.digest.${id}`;

export class Membership {
  readonly #options: MembershipOptions;
  readonly #epoch = randomBytes(8).toString('hex');
  readonly #peers = new Map<string, PeerState>();
  /** Digests of peers, and this coordinator's own, which `ClusterPlacements` stores. */
  readonly digests = new OwnerDigests();
  readonly #refreshByPeerId = new Map<string, RefreshState>();
  /** Last published JSON by model id, to find changes. */
  #published = new Map<string, string>();
  #sequence = 0;
  #digestSequence = 0;
  #lastHeartbeatAt = Number.NEGATIVE_INFINITY;
  #changeTimer: NodeJS.Timeout | null = null;
  #greetingTimer: NodeJS.Timeout | null = null;
  readonly #timer: NodeJS.Timeout;
  readonly #unsubscribe: () => void;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#unsubscribe = options.broadcast.subscribe('fleet.digest.*', (subject, bytes) => this.#receive(subject, bytes));
    this.#timer = setInterval(() => this.#tick(), HEARTBEAT_MS / 4);
  }

  get peers(): readonly PeerSummary[] {
    return [...this.#peers].map(([id, { heardAt, draining, providers, models, clockDifferenceMs }]) => {
      return { id, heardAt, draining, providers, models: models.size, clockDifferenceMs };
    });
  }

  isLive(peerId: string): boolean {
    return this.#peers.has(peerId);
  }

  /** Id and digest of each peer that serves a model. */
  *digestsAtPeers(model: string): Iterable<readonly [string, ModelDigest]> {
    for (const [owner, { digest }] of this.digests.of(model)) {
      if (owner !== this.#options.self && digest.serving > 0) yield [owner, digest];
    }
  }

  isServedByPeers(model: string): boolean {
    for (const _ of this.digestsAtPeers(model)) return true;
    return false;
  }

  /** Facts about a model, one entry per peer that serves it. */
  *offersAtPeers(model: string): Iterable<ModelFacts> {
    for (const { models } of this.#peers.values()) {
      const known = models.get(model);
      if (known !== undefined) yield known;
    }
  }

  modelsAtPeers(): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const { models } of this.#peers.values()) for (const id of models.ids()) ids.add(id);
    return ids;
  }

  /** Call when digests of this coordinator may have changed. Publishes the changes after a short delay. */
  modelsChanged(): void {
    if (this.#changeTimer !== null) return;
    const delayMs = Math.max(MIN_CHANGES_DELAY_MS, CHANGES_DELAY_MS_PER_PEER * this.#peers.size);
    this.#changeTimer = setTimeout(() => {
      this.#changeTimer = null;
      this.#publishChanges();
    }, delayMs);
  }

  /** All models of this coordinator as an encoded heartbeat: the reply to a peer's request. */
  allModels(): Uint8Array {
    // If the reply contained an unpublished change that was then reverted, no heartbeat would report the reversal, and the peer would
    // keep the change. So changes are published first.
    this.#publishChanges({ onlyIfChanged: true });
    return this.#encode([...this.#options.models()].slice(0, MAX_MODELS_PER_PEER).map(encodeModel), false);
  }

  /** Requests all models of a peer, at most once per {@link REFRESH_INTERVAL_MS}. Resolves after the request, even if it failed. */
  refresh(peerId: string): Promise<void> {
    const state = this.#refreshByPeerId.get(peerId) ?? { startedAt: Number.NEGATIVE_INFINITY, next: null };
    this.#refreshByPeerId.set(peerId, state);
    // The peer may have answered a running request before the event that made the caller refresh. So the caller gets the next one.
    state.next ??= this.#refreshSoon(peerId, state);
    return state.next;
  }

  /**
   * Call before a placement request to a peer.
   *
   * @returns Function that stores the digest in the reply, unless the digest is invalid or may be outdated.
   */
  digestReceiver(peerId: string, model: string): (text: string) => void {
    const known = this.#peers.get(peerId);
    const sequence = known?.sequence ?? 0;
    return (text) => {
      const decoded = decodeDigest(text);
      const peer = this.#peers.get(peerId);
      if (decoded.kind === 'rejected' || peer === undefined || peer !== known || peer.models.get(model) === undefined) return;
      // A heartbeat during the request may be newer than the reply. If the reply is newer, the peer publishes the model again anyway
      // (`digestSent`).
      if (peer.models.changedAt(model) > sequence) return;
      this.digests.update(peerId, model, decoded.digest, ++this.#digestSequence, this.#options.now());
    };
  }

  /** Call when a reply to a placement request contains a model's digest. The next heartbeat then contains the model. */
  digestSent(model: string): void {
    // The asking peer stores that digest. If the model then returned to its published digest, no change would be found.
    if (this.#published.has(model)) this.#published.set(model, '');
  }

  /** Publishes a heartbeat at once. Call after each connection to NATS. */
  announce(): void {
    this.#publishChanges();
  }

  close(): void {
    clearInterval(this.#timer);
    if (this.#changeTimer !== null) clearTimeout(this.#changeTimer);
    if (this.#greetingTimer !== null) clearTimeout(this.#greetingTimer);
    this.#publish([], true);
    this.#unsubscribe();
  }

  /** Removes silent peers, and publishes a heartbeat at the interval. */
  #tick(): void {
    const now = this.#options.now();
    for (const [id, { heardAt }] of this.#peers) if (Math.abs(now - heardAt) > PEER_SILENCE_MS) this.#remove(id);
    if (Math.abs(now - this.#lastHeartbeatAt) >= HEARTBEAT_MS) this.#publishChanges();
  }

  /** Publishes one heartbeat, or several if many models changed. `onlyIfChanged`: none if no model changed. */
  #publishChanges({ onlyIfChanged = false } = {}): void {
    const current = new Map<string, string>();
    const changed: Heartbeat['models'] = [];
    for (const model of this.#options.models()) {
      const entry = encodeModel(model);
      const text = JSON.stringify(entry);
      current.set(model.id, text);
      if (this.#published.get(model.id) !== text) changed.push(entry);
    }
    for (const id of this.#published.keys()) {
      if (!current.has(id)) changed.push(removedModel(id));
    }
    this.#published = current;
    if (onlyIfChanged && changed.length === 0) return;
    // `do`: a heartbeat without models proves that this coordinator is live.
    do this.#publish(changed.splice(0, MAX_CHANGES_PER_HEARTBEAT), false);
    while (changed.length > 0);
  }

  #publish(models: Heartbeat['models'], goodbye: boolean): void {
    this.#lastHeartbeatAt = this.#options.now();
    this.#sequence++;
    this.#options.broadcast.publish(subjectOf(this.#options.self), this.#encode(models, goodbye));
  }

  #encode(models: Heartbeat['models'], goodbye: boolean): Uint8Array {
    const { now, isDraining, providers } = this.#options;
    return encodeHeartbeat({
      version: CLUSTER_VERSION,
      epoch: this.#epoch,
      sequence: this.#sequence,
      at: now(),
      draining: isDraining(),
      goodbye,
      providers: providers(),
      models,
    });
  }

  #receive(subject: string, bytes: Uint8Array): void {
    const id = subject.slice(subject.lastIndexOf('.') + 1);
    if (id === this.#options.self) return;
    const decoded = decodeHeartbeat(bytes);
    if (decoded.kind !== 'heartbeat') {
      this.#options.events.refused(id, decoded);
      return;
    }
    const { heartbeat } = decoded;
    const now = this.#options.now();
    const clockDifferenceMs = heartbeat.at - now;
    if (Math.abs(clockDifferenceMs) > CLOCK_ALARM_MS) this.#options.events.clockDiffers(id, clockDifferenceMs);
    if (heartbeat.goodbye || Math.abs(clockDifferenceMs) > MAX_CLOCK_DIFFERENCE_MS) {
      this.#remove(id);
      return;
    }
    const known = this.#peers.get(id);
    const hasRestarted = known !== undefined && known.epoch !== heartbeat.epoch;
    if (hasRestarted) this.#remove(id);
    const previousSequence = known === undefined || hasRestarted ? null : known.sequence;
    if (previousSequence !== null && heartbeat.sequence <= previousSequence) return;
    const peer = this.#peers.get(id) ?? this.#add(id, heartbeat);
    if (peer === null) return;
    Object.assign(peer, {
      sequence: heartbeat.sequence,
      heardAt: now,
      clockDifferenceMs,
      draining: heartbeat.draining,
      providers: heartbeat.providers,
    });
    this.digests.heard(id, now);
    // A draining peer accepts no placements, so its models are removed.
    this.#storeDigests(id, heartbeat.draining ? peer.models.clear() : peer.models.storeChanges(heartbeat));
    const hasMissedHeartbeats = previousSequence === null || heartbeat.sequence > previousSequence + 1;
    if (hasMissedHeartbeats) void this.#requestAll(id, heartbeat.epoch);
    else if (peer.lacksModels) {
      peer.lacksModels = false;
      void this.refresh(id);
    }
  }

  /** Null: {@link MAX_PEERS} peers are known already. */
  #add(id: string, { epoch }: Heartbeat): PeerState | null {
    if (this.#peers.size >= MAX_PEERS) return null;
    const now = this.#options.now();
    const reported = { epoch, sequence: 0, heardAt: now, draining: false, providers: 0, clockDifferenceMs: 0 };
    const peer: PeerState = { ...reported, models: new PeerModels(), lacksModels: false };
    this.#peers.set(id, peer);
    this.#options.events.joined(id);
    this.#greet();
    return peer;
  }

  /** Publishes an extra heartbeat for a new peer. All peers do so, hence a delay that grows with the number of peers. */
  #greet(): void {
    if (this.#greetingTimer !== null) return;
    const spacingMs = Math.min(MIN_GREETING_MS, this.#lastHeartbeatAt + MIN_GREETING_MS - this.#options.now());
    this.#greetingTimer = setTimeout(
      () => {
        this.#greetingTimer = null;
        this.#publishChanges();
      },
      Math.max(0, spacingMs, CHANGES_DELAY_MS_PER_PEER * this.#peers.size),
    );
  }

  async #refreshSoon(peerId: string, state: RefreshState): Promise<void> {
    const pauseMs = Math.min(REFRESH_INTERVAL_MS, state.startedAt + REFRESH_INTERVAL_MS - this.#options.now());
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, pauseMs)));
    state.startedAt = this.#options.now();
    state.next = null;
    const epoch = this.#peers.get(peerId)?.epoch;
    if (epoch !== undefined) await this.#requestAll(peerId, epoch);
  }

  /** Requests and stores all models of a peer. Ignores the answer if the peer has left, restarted or begun to drain meanwhile. */
  async #requestAll(id: string, epoch: string): Promise<void> {
    const answer = await this.#options.requestModels(id).catch(() => null);
    const decoded = answer === null ? null : decodeHeartbeat(answer);
    const peer = this.#peers.get(id);
    if (peer === undefined || peer.draining || peer.epoch !== epoch) return;
    if (decoded?.kind === 'heartbeat' && decoded.heartbeat.epoch === epoch) {
      this.#storeDigests(id, peer.models.storeAll(decoded.heartbeat));
    } else peer.lacksModels = true;
  }

  #storeDigests(id: string, models: Heartbeat['models']): void {
    const now = this.#options.now();
    for (const { id: model, digest } of models) {
      if (digest === null) this.digests.remove(id, model);
      else this.digests.update(id, model, digest, ++this.#digestSequence, now);
    }
    if (models.length > 0) this.#options.events.changed(models);
  }

  #remove(id: string): void {
    const peer = this.#peers.get(id);
    if (peer === undefined) return;
    this.#peers.delete(id);
    this.#refreshByPeerId.delete(id);
    this.digests.remove(id);
    this.#options.events.left(id);
  }
}
