/** `SimulatedCluster`: a network with several coordinators. When one dies, its machines and clients move to the others. */
import { ClusterOwner } from './cluster-owner.js';
import { ClusterRequests } from './cluster-requests.js';
import { DigestTraffic } from './digest-traffic.js';
import type { EventQueue } from './event-queue.js';
import type { SimulatedMac } from './mac.js';
import type { SimulatedNetwork } from './network.js';
import type { Policy } from './policies.js';
import type { Random } from './random.js';
import type { Statistics } from './statistics.js';
import type { Job } from './workload.js';

export interface ClusterOptions {
  /** Number of coordinators, which own the machines that are connected to them. */
  readonly owners: number;
  /** Transmission delay of digests, in milliseconds; the publication interval comes on top. */
  readonly digestDelayMs: number;
  /** Share of lost messages: digests, heartbeats and prefix hints. */
  readonly lossShare: number;
  /** Whether a coordinator dies halfway through the run. */
  readonly hasDeath: boolean;
  /** Whether coordinators publish hashes of cached prompt prefixes. */
  readonly hasPrefixHints: boolean;
}

export interface ClusterReport {
  readonly owners: number;
  /** How often a coordinator asked another for a slot. */
  readonly asks: number;
  readonly busyReplies: number;
  readonly busyShare: number;
  /** Share of jobs that ran on machines of another coordinator than the client's. */
  readonly remoteShare: number;
  readonly queued: number;
  /** Granted slots that the request no longer needed. */
  readonly declinedGrants: number;
  readonly publishedDigests: number;
  /** Size of an encoded digest, in characters. */
  readonly digestSize: { readonly mean: number; readonly max: number };
  /** Requests repeated after the death of the client's coordinator. */
  readonly movedByDeath: number;
}

export interface ClusterParts {
  readonly policy: Policy;
  readonly events: EventQueue;
  readonly random: Random;
  readonly statistics: Statistics;
  /** Called after a successful job. */
  readonly answered: (job: Job) => void;
  readonly options: ClusterOptions;
  /** Virtual time of a coordinator's death, in milliseconds. Null if none dies. */
  readonly deathAtMs: number | null;
}

/** Maximum delay before a dead coordinator's machine reconnects, in milliseconds. */
const RECONNECT_MS = 5000;
/** Time after which a dead coordinator's client repeats its request. */
const CLIENT_RETRY_MS = 1000;

export class SimulatedCluster implements SimulatedNetwork {
  readonly #parts: ClusterParts;
  readonly #owners: readonly ClusterOwner[];
  readonly #ownerOf = new Map<SimulatedMac, ClusterOwner>();
  /** Online machines, with the number of times each came online. */
  readonly #connectionCounts = new Map<SimulatedMac, number>();
  readonly #traffic: DigestTraffic;
  readonly #requests: ClusterRequests;
  #movedByDeath = 0;

  constructor(parts: ClusterParts) {
    this.#parts = parts;
    const { policy, events, random, statistics, answered, options, deathAtMs } = parts;
    const { digestDelayMs, lossShare, hasPrefixHints } = options;
    const onDigestChanged = (owner: ClusterOwner, model: string): void => this.#traffic.publishSoon(owner, model);
    const onPrefixesCached = (owner: ClusterOwner, hashes: readonly number[]): void => {
      if (hasPrefixHints) this.#traffic.publishPrefixes(owner, hashes);
    };
    const deps = { policy, events, random, statistics, onDigestChanged, onPrefixesCached };
    this.#owners = Array.from({ length: options.owners }, (_, index) => new ClusterOwner(`c${index}`, deps));
    this.#traffic = new DigestTraffic({
      events,
      random,
      owners: this.#owners,
      delayMs: digestDelayMs,
      lossShare,
      onReceived: (receiver, models) => this.#requests.digestsChanged(receiver, models),
    });
    this.#requests = new ClusterRequests({
      policy,
      events,
      random,
      statistics,
      answered,
      owners: new Map(this.#owners.map((owner) => [owner.id, owner])),
      traffic: this.#traffic,
    });
    if (deathAtMs !== null) events.at(deathAtMs, () => this.#kill(this.#owners[0] as ClusterOwner));
  }

  join(mac: SimulatedMac): void {
    this.#connectionCounts.set(mac, (this.#connectionCounts.get(mac) ?? 0) + 1);
    this.#connect(mac);
  }

  left(mac: SimulatedMac): void {
    this.#connectionCounts.delete(mac);
    this.#ownerOf.get(mac)?.owner.left(mac);
    this.#ownerOf.delete(mac);
  }

  changed(mac: SimulatedMac): void {
    this.#ownerOf.get(mac)?.owner.changed(mac);
  }

  submit(job: Job): void {
    this.#parts.statistics.arrived(job);
    this.#requests.submit(job, this.#anyOwner());
  }

  report(): ClusterReport {
    const { asks, busyReplies, local, remote, queued, declined } = this.#requests.counts;
    return {
      owners: this.#owners.length,
      asks,
      busyReplies,
      busyShare: busyReplies / Math.max(1, asks),
      remoteShare: remote / Math.max(1, local + remote),
      queued,
      declinedGrants: declined,
      publishedDigests: this.#traffic.published,
      digestSize: this.#traffic.digestSize,
      movedByDeath: this.#movedByDeath,
    };
  }

  /** Kills a coordinator: its clients repeat their requests at others, and its machines reconnect to others. */
  #kill(victim: ClusterOwner): void {
    const { events, random } = this.#parts;
    const retries = this.#requests.abandon(victim);
    for (const mac of victim.die()) {
      this.#ownerOf.delete(mac);
      const connections = this.#connectionCounts.get(mac);
      events.after(random.between(0, RECONNECT_MS), () => {
        if (connections === undefined || this.#connectionCounts.get(mac) !== connections) return;
        mac.wake();
        this.#connect(mac);
      });
    }
    this.#movedByDeath += retries.length;
    for (const retry of retries) events.after(CLIENT_RETRY_MS, () => retry(this.#anyOwner()));
  }

  #connect(mac: SimulatedMac): void {
    const owner = this.#anyOwner();
    this.#ownerOf.set(mac, owner);
    owner.owner.join(mac);
  }

  /** A random live coordinator, as a load balancer would choose. */
  #anyOwner(): ClusterOwner {
    const { random } = this.#parts;
    for (;;) {
      const owner = random.pick(this.#owners);
      if (owner.isAlive) return owner;
    }
  }
}
