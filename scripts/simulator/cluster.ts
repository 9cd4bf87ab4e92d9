/**
 * Several coordinators of the simulated world. Machines and clients connect to any of them. The client's coordinator chooses an
 * owner by the real `chooseOwner` from digests that arrive late or not at all; the owner places by the real scheduler.
 */
import type { ProviderId } from '@inference/protocol';
import { chooseOwner, decodeDigest, encodeDigest, type OwnerId, type OwnerPrefix, PEER_SILENCE_MS, type Work } from '@inference/scheduler';
import { JOB_TIMINGS, MAX_ATTEMPTS } from '../../apps/coordinator/src/inference/job-timings.js';
import { ClusterOwner, type NumberedDigest, type Ticket } from './cluster-owner.js';
import type { EventQueue } from './event-queue.js';
import type { SimulatedMac } from './mac.js';
import type { SimulatedNetwork } from './network.js';
import { expectedWork, type Reservation } from './owner.js';
import type { Policy } from './policies.js';
import { PrefixOwners } from './prefix-owners.js';
import type { Random } from './random.js';
import type { Statistics } from './statistics.js';
import type { Job } from './workload.js';

export interface ClusterOptions {
  readonly owners: number;
  /** From publication to arrival of a digest, in milliseconds; publications of a model are `publishMs` apart besides. */
  readonly digestDelayMs: number;
  /** Share of lost digests, heartbeats and prefix hints. */
  readonly lossShare: number;
  /** One coordinator dies in the middle. */
  readonly hasDeath: boolean;
}

export interface ClusterReport {
  readonly owners: number;
  /** Requests for a slot to another coordinator, and replies that none is free. */
  readonly asks: number;
  readonly busyReplies: number;
  readonly busyShare: number;
  /** Share of jobs that ran on machines of another coordinator than the client's. */
  readonly remoteShare: number;
  /** Requests that waited in queues, and slots granted to a request that had one. */
  readonly queued: number;
  readonly declinedGrants: number;
  readonly publishedDigests: number;
  /** Characters. */
  readonly digestSize: { readonly mean: number; readonly max: number };
  /** Client requests that began again because a coordinator died. */
  readonly movedByDeath: number;
}

export interface ClusterParts {
  readonly policy: Policy;
  readonly events: EventQueue;
  readonly chance: Random;
  readonly statistics: Statistics;
  readonly answered: (job: Job) => void;
  readonly options: ClusterOptions;
  readonly deathAtMs: number | null;
}

interface Request {
  readonly job: Job;
  readonly work: Work;
  readonly accountId: string;
  readonly cost: number;
  readonly exclude: Set<ProviderId>;
  readonly excludedProviders: Map<OwnerId, number>;
  /** Owners that replied `busy` since the request was last seated. */
  readonly busyOwners: Set<OwnerId>;
  client: ClusterOwner;
  attempts: number;
  /** Changes whenever earlier messages about the request lose their meaning. */
  epoch: number;
  readonly tickets: Set<Ticket>;
  /** Queues that have not answered yet. */
  unansweredQueues: number;
}

/** One way between two coordinators, in milliseconds. */
const LINK_MS = 0.5;
const MIN_PUBLISH_MS = 250;
const PUBLISH_MS_PER_OWNER = 5;
const HEARTBEAT_MS = 1000;
/** Owners asked before a request queues. */
const MAX_ASKS = 3;
/** From a coordinator's death to its machines' new connection, at most. */
const RECONNECT_MS = 5000;
const CLIENT_RETRY_MS = 1000;
/** One digest of so many is encoded and decoded, because encoding each takes long. */
const MEASURED_DIGESTS = 64;

export class SimulatedCluster implements SimulatedNetwork {
  readonly #parts: ClusterParts;
  readonly #owners: readonly ClusterOwner[];
  readonly #ids: ReadonlySet<OwnerId>;
  readonly #byId: ReadonlyMap<OwnerId, ClusterOwner>;
  readonly #ownerOf = new Map<SimulatedMac, ClusterOwner>();
  /** Connections of a machine so far; an entry per machine that is there. */
  readonly #present = new Map<SimulatedMac, number>();
  readonly #requests = new Map<ClusterOwner, Set<Request>>();
  readonly #prefixes: PrefixOwners;
  readonly #toPublish = new Map<ClusterOwner, Set<string>>();
  readonly #publishedAt = new Map<ClusterOwner, number>();
  /** Owners of which a coordinator missed a digest. */
  readonly #gaps = new Map<ClusterOwner, Set<ClusterOwner>>();
  readonly #counts = { asks: 0, busyReplies: 0, local: 0, remote: 0, queued: 0, declined: 0, published: 0, moved: 0 };
  readonly #sizes = { count: 0, sum: 0, max: 0 };

  constructor(parts: ClusterParts) {
    this.#parts = parts;
    const { policy, events, chance, statistics, options, deathAtMs } = parts;
    const onDigestChanged = (owner: ClusterOwner, model: string): void => this.#publishSoon(owner, model);
    const deps = { policy, events, chance, statistics, onDigestChanged };
    this.#owners = Array.from({ length: options.owners }, (_, index) => new ClusterOwner(`c${index}`, deps));
    this.#ids = new Set(this.#owners.map(({ id }) => id));
    this.#byId = new Map(this.#owners.map((owner) => [owner.id, owner]));
    this.#prefixes = new PrefixOwners(options.digestDelayMs, options.lossShare, chance);
    events.after(HEARTBEAT_MS, () => this.#heartbeat());
    if (deathAtMs !== null) events.at(deathAtMs, () => this.#kill(this.#owners[0] as ClusterOwner));
  }

  join(mac: SimulatedMac): void {
    this.#present.set(mac, (this.#present.get(mac) ?? 0) + 1);
    this.#connect(mac);
  }

  left(mac: SimulatedMac): void {
    this.#present.delete(mac);
    this.#ownerOf.get(mac)?.owner.left(mac);
    this.#ownerOf.delete(mac);
  }

  changed(mac: SimulatedMac): void {
    this.#ownerOf.get(mac)?.owner.changed(mac);
  }

  submit(job: Job): void {
    const { policy, chance, statistics } = this.#parts;
    const work = expectedWork(job, policy, chance);
    statistics.arrived(job);
    const request: Request = {
      job,
      work,
      accountId: `${job.account}`,
      cost: work.promptTokens + work.completionTokens,
      exclude: new Set(),
      excludedProviders: new Map(),
      busyOwners: new Set(),
      client: this.#anyOwner(),
      attempts: 0,
      epoch: 0,
      tickets: new Set(),
      unansweredQueues: 0,
    };
    this.#accept(request);
  }

  report(): ClusterReport {
    const { asks, busyReplies, local, remote, queued, declined, published, moved } = this.#counts;
    return {
      owners: this.#owners.length,
      asks,
      busyReplies,
      busyShare: busyReplies / Math.max(1, asks),
      remoteShare: remote / Math.max(1, local + remote),
      queued,
      declinedGrants: declined,
      publishedDigests: published,
      digestSize: { mean: this.#sizes.sum / Math.max(1, this.#sizes.count), max: this.#sizes.max },
      movedByDeath: moved,
    };
  }

  #accept(request: Request): void {
    const known = this.#requests.get(request.client);
    if (known === undefined) this.#requests.set(request.client, new Set([request]));
    else known.add(request);
    this.#seat(request);
  }

  #end(request: Request): void {
    request.epoch++;
    this.#requests.get(request.client)?.delete(request);
  }

  #refuse(request: Request, reason: string): void {
    this.#end(request);
    this.#parts.statistics.refused(request.job, reason);
  }

  #seat(request: Request): void {
    request.busyOwners.clear();
    this.#choose(request);
  }

  #choose(request: Request): void {
    const { policy, events, chance } = this.#parts;
    const { client, job, busyOwners } = request;
    this.#learn(client, client, job.model);
    const demand = {
      work: request.work,
      contextTokens: 0,
      imageSize: null,
      trustFloor: null,
      excludedOwners: busyOwners.size < MAX_ASKS ? busyOwners : this.#ids,
      excludedProviders: request.excludedProviders,
      prefix: this.#prefixOf(request),
    };
    const choice = chooseOwner(client.digests.of(job.model), demand, client.id, events.now, chance.next, policy.constants);
    if (choice.kind === 'none') this.#refuse(request, 'none');
    else if (choice.kind === 'queue') this.#queue(request, choice.owners);
    else {
      const owner = this.#byId.get(choice.owner) as ClusterOwner;
      if (owner === client) this.#placeLocally(request, choice);
      else this.#ask(request, owner, choice);
    }
  }

  #placeLocally(request: Request, { expectedWaitMs, loadedOnly }: { expectedWaitMs: number | null; loadedOnly: boolean }): void {
    const { client } = request;
    const placed = client.place(request, expectedWaitMs, loadedOnly);
    if (typeof placed !== 'string') {
      this.#start(request, client, placed);
      return;
    }
    request.busyOwners.add(client.id);
    this.#choose(request);
  }

  #ask(
    request: Request,
    owner: ClusterOwner,
    choice: { readonly classIndex: number; readonly expectedWaitMs: number | null; readonly loadedOnly: boolean },
  ): void {
    const { client, job, epoch } = request;
    const isStale = (): boolean => request.epoch !== epoch;
    const answered = client.digests.ask(owner.id, job.model, choice.classIndex);
    this.#counts.asks++;
    this.#send(() => {
      if (!owner.isAlive) {
        // NATS answers at once that nobody listens.
        this.#send(() => {
          answered();
          client.digests.remove(owner.id);
          if (!isStale()) this.#choose(request);
        });
        return;
      }
      const placed = owner.place(request, choice.expectedWaitMs, choice.loadedOnly);
      const fresh = owner.digest(job.model);
      if (typeof placed === 'string') this.#counts.busyReplies++;
      this.#send(() => {
        answered();
        this.#store(client, owner, job.model, fresh);
        if (typeof placed === 'string') {
          request.busyOwners.add(owner.id);
          if (!isStale()) this.#choose(request);
        } else if (isStale()) this.#send(() => placed.release());
        else this.#send(() => this.#start(request, owner, placed, epoch));
      });
    });
  }

  /** Queues a request locally and at two peers. */
  #queue(request: Request, peers: readonly OwnerId[]): void {
    const { client, epoch } = request;
    const { events } = this.#parts;
    this.#counts.queued++;
    const targets = [client, ...peers.map((id) => this.#byId.get(id) as ClusterOwner)];
    request.unansweredQueues = targets.length;
    for (const owner of targets) {
      const ticket = this.#ticket(request, owner);
      request.tickets.add(ticket);
      this.#between(client, owner, () => {
        if (request.epoch !== epoch) return;
        const outcome = owner.isAlive ? owner.enqueue(ticket) : 'queue_full';
        this.#between(client, owner, () => {
          if (request.epoch !== epoch) return;
          request.unansweredQueues--;
          if (outcome !== 'queued') this.#withoutTicket(request, ticket, outcome);
        });
      });
      // Granted by the own queue.
      if (request.epoch !== epoch) return;
    }
    events.after(JOB_TIMINGS.queueMs, () => {
      if (request.epoch !== epoch) return;
      this.#cancelTickets(request);
      this.#refuse(request, 'timeout');
    });
  }

  #ticket(request: Request, owner: ClusterOwner): Ticket {
    const { client, accountId, cost, epoch } = request;
    const ticket: Ticket = {
      accountId,
      cost,
      request,
      owner,
      granted: (reservation) =>
        this.#between(client, owner, () => {
          if (request.epoch !== epoch) {
            this.#counts.declined++;
            this.#between(client, owner, () => reservation.release());
            return;
          }
          request.tickets.delete(ticket);
          request.epoch++;
          this.#cancelTickets(request);
          const started = request.epoch;
          this.#between(client, owner, () => this.#start(request, owner, reservation, started));
        }),
      displaced: () =>
        this.#between(client, owner, () => {
          if (request.epoch === epoch) this.#withoutTicket(request, ticket, 'queue_full');
        }),
      lost: () =>
        this.#parts.events.after(PEER_SILENCE_MS, () => {
          if (request.epoch === epoch) this.#withoutTicket(request, ticket, 'lost');
        }),
    };
    return ticket;
  }

  #withoutTicket(request: Request, ticket: Ticket, reason: 'hopeless' | 'queue_full' | 'lost'): void {
    request.tickets.delete(ticket);
    if (request.tickets.size > 0 || request.unansweredQueues > 0) return;
    if (reason !== 'lost') this.#refuse(request, reason);
    else {
      request.epoch++;
      this.#seat(request);
    }
  }

  #cancelTickets(request: Request): void {
    for (const ticket of request.tickets) this.#between(request.client, ticket.owner, () => ticket.owner.cancel(ticket));
    request.tickets.clear();
  }

  #start(request: Request, owner: ClusterOwner, reservation: Reservation, epoch = request.epoch): void {
    const { job, client } = request;
    if (request.epoch !== epoch) {
      reservation.release();
      return;
    }
    request.attempts++;
    request.epoch++;
    const running = request.epoch;
    const isAbandoned = (): boolean => request.epoch !== running;
    reservation.start({
      isAbandoned,
      done: () => {
        this.#prefixes.record(job.chain, owner.id, this.#parts.events.now);
        if (isAbandoned()) return;
        if (owner === client) this.#counts.local++;
        else this.#counts.remote++;
        this.#end(request);
        this.#parts.answered(job);
      },
      failed: (reason, providerId) => {
        const detectMs = owner === client ? 0 : owner.isAlive ? LINK_MS : PEER_SILENCE_MS;
        const failed = (): void => {
          if (isAbandoned()) return;
          if (reason !== 'full' && !request.exclude.has(providerId)) {
            request.exclude.add(providerId);
            request.excludedProviders.set(owner.id, (request.excludedProviders.get(owner.id) ?? 0) + 1);
          }
          request.epoch++;
          if (request.attempts >= MAX_ATTEMPTS) this.#refuse(request, 'failed');
          else this.#seat(request);
        };
        if (detectMs === 0) failed();
        else this.#parts.events.after(detectMs, failed);
      },
    });
  }

  /** Clients of the dead coordinator begin again elsewhere; its machines reconnect to others. */
  #kill(victim: ClusterOwner): void {
    const { events, chance } = this.#parts;
    const abandoned = [...(this.#requests.get(victim) ?? [])];
    this.#requests.delete(victim);
    for (const request of abandoned) {
      request.epoch++;
      const tickets = [...request.tickets];
      request.tickets.clear();
      events.after(PEER_SILENCE_MS, () => {
        for (const ticket of tickets) ticket.owner.cancel(ticket);
      });
    }
    for (const mac of victim.die()) {
      this.#ownerOf.delete(mac);
      const connections = this.#present.get(mac);
      events.after(chance.between(0, RECONNECT_MS), () => {
        if (connections === undefined || this.#present.get(mac) !== connections) return;
        mac.wake();
        this.#connect(mac);
      });
    }
    this.#counts.moved += abandoned.length;
    for (const request of abandoned) {
      events.after(CLIENT_RETRY_MS, () => {
        request.client = this.#anyOwner();
        this.#accept(request);
      });
    }
  }

  #connect(mac: SimulatedMac): void {
    const owner = this.#anyOwner();
    this.#ownerOf.set(mac, owner);
    owner.owner.join(mac);
  }

  /** As a load balancer chooses. */
  #anyOwner(): ClusterOwner {
    const { chance } = this.#parts;
    for (;;) {
      const owner = chance.oneOf(this.#owners);
      if (owner.isAlive) return owner;
    }
  }

  #prefixOf({ job, client }: Request): OwnerPrefix | null {
    return this.#parts.policy.constants.affinityWeight === 0 ? null : this.#prefixes.find(job.chain, client.id, this.#parts.events.now);
  }

  #publishSoon(owner: ClusterOwner, model: string): void {
    const pending = this.#toPublish.get(owner);
    if (pending !== undefined) {
      pending.add(model);
      return;
    }
    const { events, options } = this.#parts;
    this.#toPublish.set(owner, new Set([model]));
    const intervalMs = Math.max(MIN_PUBLISH_MS, PUBLISH_MS_PER_OWNER * options.owners);
    events.at((this.#publishedAt.get(owner) ?? -intervalMs) + intervalMs, () => this.#publish(owner));
  }

  #publish(owner: ClusterOwner): void {
    const { events, chance, options } = this.#parts;
    const models = this.#toPublish.get(owner) ?? [];
    this.#toPublish.delete(owner);
    this.#publishedAt.set(owner, events.now);
    if (!owner.isAlive) return;
    const published = [...models].map((model) => [model, owner.digest(model)] as const);
    for (const [, { digest }] of published) this.#measure(digest);
    const receivers: ClusterOwner[] = [];
    for (const peer of this.#owners) {
      if (peer === owner || !peer.isAlive) continue;
      if (!chance.happens(options.lossShare)) receivers.push(peer);
      else this.#gapsOf(peer).add(owner);
    }
    events.after(options.digestDelayMs, () => {
      for (const peer of receivers) for (const [model, numbered] of published) this.#store(peer, owner, model, numbered);
    });
  }

  /** Signs of life. A peer that missed a digest notices the gap and asks for all. */
  #heartbeat(): void {
    const { events, chance, options } = this.#parts;
    const heard: [ClusterOwner, ClusterOwner][] = [];
    for (const owner of this.#owners) {
      if (!owner.isAlive) continue;
      for (const peer of this.#owners) if (peer !== owner && peer.isAlive && !chance.happens(options.lossShare)) heard.push([peer, owner]);
    }
    events.after(options.digestDelayMs, () => {
      for (const [peer, owner] of heard) {
        peer.digests.heard(owner.id, events.now);
        if (this.#gapsOf(peer).delete(owner)) this.#sendAll(owner, peer);
      }
    });
    events.after(HEARTBEAT_MS, () => this.#heartbeat());
  }

  #sendAll(owner: ClusterOwner, peer: ClusterOwner): void {
    this.#send(() => {
      if (!owner.isAlive) return;
      const all = [...owner.models()].map((model) => [model, owner.digest(model)] as const);
      this.#parts.events.after(this.#parts.options.digestDelayMs, () => {
        for (const [model, numbered] of all) this.#store(peer, owner, model, numbered);
      });
    });
  }

  #gapsOf(peer: ClusterOwner): Set<ClusterOwner> {
    const known = this.#gaps.get(peer);
    if (known !== undefined) return known;
    const gaps = new Set<ClusterOwner>();
    this.#gaps.set(peer, gaps);
    return gaps;
  }

  #learn(peer: ClusterOwner, owner: ClusterOwner, model: string): void {
    this.#store(peer, owner, model, owner.digest(model));
  }

  #store(peer: ClusterOwner, owner: ClusterOwner, model: string, { digest, sequence }: NumberedDigest): void {
    peer.digests.update(owner.id, model, digest, sequence, this.#parts.events.now);
  }

  /** The published digest survives its encoding. */
  #measure(digest: NumberedDigest['digest']): void {
    if (this.#counts.published++ % MEASURED_DIGESTS !== 0) return;
    const text = encodeDigest(digest);
    const decoded = decodeDigest(text);
    if (decoded.kind === 'rejected') throw new Error(`own digest rejected: ${decoded.reason}: ${text}`);
    this.#sizes.count++;
    this.#sizes.sum += text.length;
    this.#sizes.max = Math.max(this.#sizes.max, text.length);
  }

  #between(one: ClusterOwner, other: ClusterOwner, deliver: () => void): void {
    if (one === other) deliver();
    else this.#send(deliver);
  }

  #send(deliver: () => void): void {
    this.#parts.events.after(LINK_MS, deliver);
  }
}
