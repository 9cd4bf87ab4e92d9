/** `PeerLinks`: the links to all peers. Opens links on demand, and gives each an equal share of the unacknowledged bytes allowed. */
import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '../transport/clock.js';
import type { ClusterTransport } from '../transport/cluster-transport.js';
import type { IncomingStreamHandler, LinkEvent, LinkLimits } from './link-options.js';
import { PeerLink } from './peer-link.js';
import type { RequestHandler } from './requests.js';

/** Coordinator ids must be tokens of NATS subjects. */
const COORDINATOR_ID = /^[A-Za-z0-9_-]{1,64}$/;
const MIN_WINDOW_BYTES = 128 * 1024;

export interface PeerLinksOptions {
  /** Id of this coordinator. */
  readonly self: string;
  readonly transport: ClusterTransport;
  readonly log: (event: LinkEvent) => void;
  /** Unacknowledged bytes that the links share equally. Each may have at least {@link MIN_WINDOW_BYTES}. Default 32 MiB. */
  readonly totalWindowBytes?: number;
  readonly maxPeers?: number;
  readonly limits?: Partial<LinkLimits>;
  readonly clock?: Clock;
  readonly randomEpoch?: () => number;
}

export class PeerLinks {
  readonly #options: PeerLinksOptions;
  readonly #links = new Map<string, PeerLink>();
  readonly #handlers = { requests: new Map<string, RequestHandler>(), streams: new Map<string, IncomingStreamHandler>() };
  readonly #linkListeners = new Set<(link: PeerLink) => void>();
  readonly #unsubscribe: () => void;

  constructor(options: PeerLinksOptions) {
    if (!COORDINATOR_ID.test(options.self)) throw new RangeError('a name of a coordinator has 1 to 64 letters, digits, - and _');
    this.#options = options;
    this.#unsubscribe = options.transport.subscribe(`coordinator.${options.self}.in.*`, (subject, payload, isNoResponders) => {
      const peer = subject.slice(subject.lastIndexOf('.') + 1);
      if (isNoResponders) this.#links.get(peer)?.noResponders();
      else this.#linkOf(peer)?.receive(payload);
    });
  }

  /** Sets the handler for requests of a kind from any peer. */
  onRequest(kind: string, handler: RequestHandler): void {
    this.#handlers.requests.set(kind, handler);
  }

  /** Sets the handler for streams of a kind that any peer opens. */
  onStream(kind: string, handler: IncomingStreamHandler): void {
    this.#handlers.streams.set(kind, handler);
  }

  /** Calls back for each new link, opened by either side. Returns a function that unsubscribes. */
  onLink(listener: (link: PeerLink) => void): () => void {
    this.#linkListeners.add(listener);
    return () => this.#linkListeners.delete(listener);
  }

  /** Returns the link to a peer, and opens it if necessary. Throws RangeError for an invalid id or too many peers. */
  link(peer: string): PeerLink {
    const link = this.#linkOf(peer);
    if (link === null) throw new RangeError('not a peer, or too many peers');
    return link;
  }

  get links(): ReadonlyMap<string, PeerLink> {
    return this.#links;
  }

  /** Closes the link to a peer that has left. A later envelope of the peer opens the link again. */
  remove(peer: string): void {
    const link = this.#links.get(peer);
    if (link === undefined) return;
    this.#links.delete(peer);
    link.close();
    this.#shareWindow();
  }

  close(): void {
    this.#unsubscribe();
    for (const peer of [...this.#links.keys()]) this.remove(peer);
  }

  #linkOf(peer: string): PeerLink | null {
    const existing = this.#links.get(peer);
    if (existing !== undefined) return existing;
    const { self, transport, limits, log, maxPeers = 1_000 } = this.#options;
    if (!COORDINATOR_ID.test(peer) || peer === self || this.#links.size >= maxPeers) return null;
    const link = new PeerLink({
      peer,
      transport,
      outgoingSubject: `coordinator.${peer}.in.${self}`,
      incomingSubject: `coordinator.${self}.in.${peer}`,
      clock: this.#options.clock ?? systemClock,
      randomEpoch: this.#options.randomEpoch ?? randomEpoch,
      windowBytes: MIN_WINDOW_BYTES,
      handlers: this.#handlers,
      ...(limits === undefined ? {} : { limits }),
      log,
    });
    this.#links.set(peer, link);
    this.#shareWindow();
    for (const listener of this.#linkListeners) listener(link);
    return link;
  }

  #shareWindow(): void {
    const total = this.#options.totalWindowBytes ?? 32 * 1024 * 1024;
    const share = Math.max(MIN_WINDOW_BYTES, Math.floor(total / Math.max(1, this.#links.size)));
    for (const link of this.#links.values()) link.windowBytes = share;
  }
}

function randomEpoch(): number {
  return randomBytes(6).readUIntBE(0, 6) || 1;
}
