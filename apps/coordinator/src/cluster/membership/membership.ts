/**
 * `Membership`: tracks the live coordinators of the cluster (peers) and the models of each peer, from their heartbeats.
 *
 * Every coordinator publishes a heartbeat per second. A peer leaves with a last heartbeat (goodbye), or is removed after
 * `PEER_SILENCE_MS` without a heartbeat.
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
  MAX_MODELS_PER_MESSAGE,
  type PublishedModel,
} from './heartbeat.js';
import { MAX_MODELS_PER_PEER, PeerModels, removedModel } from './peer-models.js';

/** Part of the NATS transport for messages to all peers. */
export interface Broadcast {
  publish(subject: string, bytes: Uint8Array): void;
  /** Calls `handler` with every message on a matching subject. Returns a function that unsubscribes. */
  subscribe(pattern: string, handler: (subject: string, bytes: Uint8Array) => void): () => void;
}

export interface MembershipEvents {
  joined(peerId: string): void;
  left(peerId: string): void;
  /** Models of a peer have changed. Queued requests for them may now get a slot. */
  changed(models: Heartbeat['models']): void;
  /** A peer's clock differs by more than {@link CLOCK_ALARM_MS}. */
  clockDiffers(peerId: string, ms: number): void;
  /** A heartbeat was malformed or of an unsupported version, and is ignored. */
  refused(peerId: string, refusal: RefusedHeartbeat): void;
}

export type RefusedHeartbeat = Exclude<DecodedHeartbeat, { readonly kind: 'heartbeat' }>;

interface MembershipOptions {
  /** Id of this coordinator. */
  readonly self: string;
  readonly broadcast: Broadcast;
  /** Models that providers of this coordinator serve now. */
  readonly models: () => Iterable<PublishedModel>;
  /** Count of providers connected here. */
  readonly providers: () => number;
  readonly isDraining: () => boolean;
  /** Requests all models of a peer over its link, because a heartbeat was missed. */
  readonly requestModels: (peerId: string) => Promise<Uint8Array>;
  readonly events: MembershipEvents;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** State of a peer, as its heartbeats report. */
interface PeerState {
  epoch: string;
  sequence: number;
  heardAt: number;
  draining: boolean;
  providers: number;
  clockMs: number;
  readonly models: PeerModels;
  /** Whether a request for all models failed. The next heartbeat repeats the request. */
  lacksModels: boolean;
}

/** State of requests for all models of one peer. */
interface Refresh {
  /** Start of the last request. */
  startedAt: number;
  /** The next request, not yet sent, which all callers share; null: none. */
  next: Promise<void> | null;
}

export interface PeerSummary {
  readonly id: string;
  readonly heardAt: number;
  readonly draining: boolean;
  readonly providers: number;
  /** Number of models that the peer serves. */
  readonly models: number;
  /** The peer's clock minus this coordinator's. */
  readonly clockMs: number;
}

const HEARTBEAT_MS = 1000;
/** Delay before changed digests (summaries of models) are published: a time per peer, but at least the minimum. Limits the traffic. */
const MIN_CHANGES_DELAY_MS = 250;
const CHANGES_DELAY_MS_PER_PEER = 5;
/** Minimum time from a heartbeat to an extra one for a new peer. Limits the traffic that an unstable peer causes. */
const MIN_GREETING_MS = 100;
/** Minimum time between two requests for all models of a peer. */
const REFRESH_INTERVAL_MS = 1000;
/** Limits the memory that hostile peers can occupy. */
const MAX_PEERS = 1024;
/** Clock difference above which the operator is warned. */
const CLOCK_ALARM_MS = 5000;
/** Clock difference above which a peer is removed. */
const MAX_CLOCK_DIFFERENCE_MS = 120_000;

const subjectOf = (id: string): string => `fleet.digest.${id}`;

export class Membership {
  readonly #options: MembershipOptions;
  readonly #epoch = randomBytes(8).toString('hex');
  /** Live peers by id. */
  readonly #peers = new Map<string, PeerState>();
  /** Digests by peer and model. Placements choose a coordinator by them. */
  readonly digests = new OwnerDigests();
  readonly #refreshes = new Map<string, Refresh>();
  /** Last published JSON of each model, to find changes. */
  #published = new Map<string, string>();
  #sequence = 0;
  #modelSequence = 0;
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
    return [...this.#peers].map(([id, { heardAt, draining, providers, models, clockMs }]) => {
      return { id, heardAt, draining, providers, models: models.size, clockMs };
    });
  }

  isLive(peerId: string): boolean {
    return this.#peers.has(peerId);
  }

  /** Peer ids and digests of live peers that serve a model. */
  *digestsAtPeers(model: string): Iterable<readonly [string, ModelDigest]> {
    for (const [owner, { digest }] of this.digests.of(model)) if (this.isLive(owner) && digest.serving > 0) yield [owner, digest];
  }

  isServedByPeers(model: string): boolean {
    for (const _ of this.digestsAtPeers(model)) return true;
    return false;
  }

  /** Type and offers of a model, per peer that serves the model. */
  *servedBy(model: string): Iterable<Pick<PublishedModel, 'type' | 'images' | 'vision'>> {
    for (const { models } of this.#peers.values()) {
      const known = models.get(model);
      if (known !== undefined) yield known;
    }
  }

  /** Ids of all models at peers. */
  models(): ReadonlySet<string> {
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

  /** Answers a request of kind `models` with all models of this coordinator. Peers ask after a missed heartbeat. */
  allModels(): Uint8Array {
    // Publishes changes first, so that `#published` equals this answer. A change that is reverted later is then published again.
    this.#publishChanges({ onlyIfChanged: true });
    return this.#encode([...this.#options.models()].slice(0, MAX_MODELS_PER_PEER).map(encodeModel), false);
  }

  /** Requests all models of a peer, whose digests may be outdated. At most once per {@link REFRESH_INTERVAL_MS} and peer. */
  refresh(peerId: string): Promise<void> {
    const state = this.#refreshes.get(peerId) ?? { startedAt: Number.NEGATIVE_INFINITY, next: null };
    this.#refreshes.set(peerId, state);
    // The reply to a running request may be older than the event that made the caller refresh. So callers wait for the next one.
    state.next ??= this.#refreshSoon(peerId, state);
    return state.next;
  }

  /**
   * Call before a placement request to a peer.
   *
   * @returns Function that stores the digest in the reply, unless it is invalid or a message during the request may have outdated it.
   */
  digestReceiver(peerId: string, model: string): (text: string) => void {
    const known = this.#peers.get(peerId);
    const sequence = known?.sequence ?? 0;
    return (text) => {
      const decoded = decodeDigest(text);
      const peer = this.#peers.get(peerId);
      if (decoded.kind === 'rejected' || peer === undefined || peer !== known || peer.models.get(model) === undefined) return;
      // If the reply is newer after all, the peer publishes the model again.
      if (peer.models.changedAt(model) > sequence) return;
      this.digests.update(peerId, model, decoded.digest, ++this.#modelSequence, this.#options.now());
    };
  }

  /** Call after a reply with a model's current digest. Peers may have stored it, so the next heartbeat contains the model again. */
  digestSent(model: string): void {
    if (this.#published.has(model)) this.#published.set(model, '');
  }

  /** Publishes a heartbeat at once. Call after a reconnect to NATS. */
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

  /** Publishes the changed models in one or more heartbeats. */
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
    do this.#publish(changed.splice(0, MAX_MODELS_PER_MESSAGE), false);
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
    const clockMs = heartbeat.at - now;
    if (Math.abs(clockMs) > CLOCK_ALARM_MS) this.#options.events.clockDiffers(id, clockMs);
    if (heartbeat.goodbye || Math.abs(clockMs) > MAX_CLOCK_DIFFERENCE_MS) {
      this.#remove(id);
      return;
    }
    const known = this.#peers.get(id);
    if (known !== undefined && known.epoch === heartbeat.epoch && heartbeat.sequence <= known.sequence) return;
    const isContinued = known !== undefined && known.epoch === heartbeat.epoch && heartbeat.sequence === known.sequence + 1;
    if (known !== undefined && known.epoch !== heartbeat.epoch) this.#remove(id);
    const peer = this.#peers.get(id) ?? this.#add(id, heartbeat);
    if (peer === null) return;
    Object.assign(peer, {
      sequence: heartbeat.sequence,
      heardAt: now,
      clockMs,
      draining: heartbeat.draining,
      providers: heartbeat.providers,
    });
    this.digests.heard(id, now);
    // A draining peer serves no models.
    this.#storeDigests(id, heartbeat.draining ? peer.models.clear() : peer.models.storeChanges(heartbeat));
    if (!isContinued) void this.#requestAll(id, heartbeat.epoch);
    else if (peer.lacksModels) {
      peer.lacksModels = false;
      void this.refresh(id);
    }
  }

  /** Null: {@link MAX_PEERS} peers are known already. */
  #add(id: string, { epoch }: Heartbeat): PeerState | null {
    if (this.#peers.size >= MAX_PEERS) return null;
    const now = this.#options.now();
    const reported = { epoch, sequence: 0, heardAt: now, draining: false, providers: 0, clockMs: 0 };
    const peer: PeerState = { ...reported, models: new PeerModels(), lacksModels: false };
    this.#peers.set(id, peer);
    this.#options.events.joined(id);
    this.#greet();
    return peer;
  }

  /** Publishes an extra heartbeat for a new peer. The delay grows with the number of peers, because all of them do so. */
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

  async #refreshSoon(peerId: string, state: Refresh): Promise<void> {
    const pauseMs = Math.min(REFRESH_INTERVAL_MS, state.startedAt + REFRESH_INTERVAL_MS - this.#options.now());
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, pauseMs)));
    state.startedAt = this.#options.now();
    state.next = null;
    const epoch = this.#peers.get(peerId)?.epoch;
    if (epoch !== undefined) await this.#requestAll(peerId, epoch);
  }

  /** Requests and stores all models of a peer. Ignores the answer if the peer has restarted meanwhile. */
  async #requestAll(id: string, epoch: string): Promise<void> {
    const answer = await this.#options.requestModels(id).catch(() => null);
    const decoded = answer === null ? null : decodeHeartbeat(answer);
    const peer = this.#peers.get(id);
    if (peer === undefined || peer.draining || peer.epoch !== epoch) return;
    if (decoded?.kind === 'heartbeat' && decoded.heartbeat.epoch === epoch) {
      this.#storeDigests(id, peer.models.storeAll(decoded.heartbeat));
    } else peer.lacksModels = true;
  }

  /** Stores the digests of a peer's changed models. */
  #storeDigests(id: string, models: Heartbeat['models']): void {
    const now = this.#options.now();
    for (const { id: model, digest } of models) {
      if (digest === null) this.digests.remove(id, model);
      else this.digests.update(id, model, digest, ++this.#modelSequence, now);
    }
    if (models.length > 0) this.#options.events.changed(models);
  }

  #remove(id: string): void {
    const peer = this.#peers.get(id);
    if (peer === undefined) return;
    this.#peers.delete(id);
    this.#refreshes.delete(id);
    this.digests.remove(id);
    this.#options.events.left(id);
  }
}
