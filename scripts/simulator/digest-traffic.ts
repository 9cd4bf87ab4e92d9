/**
 * `DigestTraffic`: delivers messages between simulated coordinators, with delay and loss.
 *
 * The messages are digests (free slots per model), hashes of cached prompt prefixes, and heartbeats.
 */
import { decodeDigest, encodeDigest } from '@inference/scheduler';
import type { ClusterOwner, NumberedDigest } from './cluster-owner.js';
import type { EventQueue } from './event-queue.js';
import type { Random } from './random.js';

export interface DigestTrafficOptions {
  readonly events: EventQueue;
  readonly random: Random;
  readonly owners: readonly ClusterOwner[];
  readonly delayMs: number;
  readonly lossShare: number;
  /** Called when a coordinator receives digests from a peer. */
  readonly onReceived: (receiver: ClusterOwner, models: Iterable<string>) => void;
}

/** Same values as in the coordinator's `Membership`. */
const MIN_PUBLISH_MS = 250;
const PUBLISH_MS_PER_OWNER = 5;
const HEARTBEAT_MS = 1000;
/** Every 64th digest is encoded, to measure sizes; encoding all would take too long. */
const MEASURED_DIGESTS = 64;

type Published = readonly (readonly [model: string, NumberedDigest])[];

export class DigestTraffic {
  readonly #options: DigestTrafficOptions;
  /** Models whose digest is to be published next. Key: publishing coordinator. */
  readonly #outdated = new Map<ClusterOwner, Set<string>>();
  readonly #publishedAt = new Map<ClusterOwner, number>();
  /** Peers whose digest was lost, until one of their heartbeats reveals the loss. Key: receiver. */
  readonly #gaps = new Map<ClusterOwner, Set<ClusterOwner>>();
  #published = 0;
  readonly #sizes = { count: 0, sum: 0, max: 0 };

  constructor(options: DigestTrafficOptions) {
    this.#options = options;
    options.events.after(HEARTBEAT_MS, () => this.#heartbeat());
  }

  get published(): number {
    return this.#published;
  }

  /** Sizes of the encoded digests, in characters. */
  get digestSize(): { readonly mean: number; readonly max: number } {
    const { count, sum, max } = this.#sizes;
    return { mean: sum / Math.max(1, count), max };
  }

  /** Publishes a model's digest at the end of the publication interval, together with other outdated digests. */
  publishSoon(owner: ClusterOwner, model: string): void {
    const outdated = this.#outdated.get(owner);
    if (outdated !== undefined) {
      outdated.add(model);
      return;
    }
    const { events, owners } = this.#options;
    this.#outdated.set(owner, new Set([model]));
    const intervalMs = Math.max(MIN_PUBLISH_MS, PUBLISH_MS_PER_OWNER * owners.length);
    events.at((this.#publishedAt.get(owner) ?? -intervalMs) + intervalMs, () => this.#publish(owner));
  }

  publishPrefixes(owner: ClusterOwner, hashes: readonly number[]): void {
    const { events, random, owners, lossShare, delayMs } = this.#options;
    if (!owner.isAlive) return;
    const receivers = owners.filter((peer) => peer !== owner && peer.isAlive && !random.happens(lossShare));
    owner.prefixes.record(hashes, owner.id, events.now);
    events.after(delayMs, () => {
      for (const peer of receivers) peer.prefixes.record(hashes, owner.id, events.now);
    });
  }

  store(receiver: ClusterOwner, owner: ClusterOwner, model: string, { digest, sequence }: NumberedDigest): void {
    receiver.digests.update(owner.id, model, digest, sequence, this.#options.events.now);
  }

  #publish(owner: ClusterOwner): void {
    const { events, random, owners, lossShare, delayMs } = this.#options;
    const models = this.#outdated.get(owner) ?? [];
    this.#outdated.delete(owner);
    this.#publishedAt.set(owner, events.now);
    if (!owner.isAlive) return;
    const published = [...models].map((model) => [model, owner.digest(model)] as const);
    for (const [, { digest }] of published) this.#measure(digest);
    const receivers: ClusterOwner[] = [];
    for (const peer of owners) {
      if (peer === owner || !peer.isAlive) continue;
      if (!random.happens(lossShare)) receivers.push(peer);
      else this.#gapsOf(peer).add(owner);
    }
    events.after(delayMs, () => {
      for (const peer of receivers) this.#receive(peer, owner, published);
    });
  }

  /** Sends heartbeats. After a lost digest, the receiver detects the gap and requests all digests. */
  #heartbeat(): void {
    const { events, random, owners, lossShare, delayMs } = this.#options;
    const heard: [ClusterOwner, ClusterOwner][] = [];
    for (const owner of owners) {
      if (!owner.isAlive) continue;
      for (const peer of owners) if (peer !== owner && peer.isAlive && !random.happens(lossShare)) heard.push([peer, owner]);
    }
    events.after(delayMs, () => {
      for (const [peer, owner] of heard) {
        peer.digests.heard(owner.id, events.now);
        if (this.#gapsOf(peer).delete(owner)) this.#sendAll(owner, peer);
      }
    });
    events.after(HEARTBEAT_MS, () => this.#heartbeat());
  }

  #sendAll(owner: ClusterOwner, peer: ClusterOwner): void {
    if (!owner.isAlive) return;
    const all = [...owner.models()].map((model) => [model, owner.digest(model)] as const);
    this.#options.events.after(this.#options.delayMs, () => this.#receive(peer, owner, all));
  }

  #receive(peer: ClusterOwner, owner: ClusterOwner, published: Published): void {
    if (!peer.isAlive) return;
    for (const [model, numbered] of published) this.store(peer, owner, model, numbered);
    this.#options.onReceived(
      peer,
      published.map(([model]) => model),
    );
  }

  #gapsOf(peer: ClusterOwner): Set<ClusterOwner> {
    const known = this.#gaps.get(peer);
    if (known !== undefined) return known;
    const gaps = new Set<ClusterOwner>();
    this.#gaps.set(peer, gaps);
    return gaps;
  }

  /** Records the encoded size of a sample of digests. Throws if the encoded digest cannot be decoded. */
  #measure(digest: NumberedDigest['digest']): void {
    if (this.#published++ % MEASURED_DIGESTS !== 0) return;
    const text = encodeDigest(digest);
    const decoded = decodeDigest(text);
    if (decoded.kind === 'rejected') throw new Error(`own digest rejected: ${decoded.reason}: ${text}`);
    this.#sizes.count++;
    this.#sizes.sum += text.length;
    this.#sizes.max = Math.max(this.#sizes.max, text.length);
  }
}
