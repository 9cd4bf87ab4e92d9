/**
 * `ClusterRequests`: places clients' requests in a simulated cluster, by the rules of the real `ClusterPlacements` of apps/coordinator.
 *
 * The coordinator that received a request asks coordinators for a slot, in the order of `chooseOwner`. If none has one, the request queues
 * at several, and the first grant wins. Unlike in `ClusterPlacements`, a request without a usable digest is refused instead of queued.
 */
import type { ProviderId } from '@inference/protocol';
import {
  chooseOwner,
  extractPrefixes,
  type OwnerChoice,
  type OwnerId,
  PEER_SILENCE_MS,
  type PromptPrefix,
  type Work,
} from '@inference/scheduler';
import { JOB_TIMINGS, MAX_ATTEMPTS } from '../../apps/coordinator/src/inference/job-timings.js';
import type { ClusterOwner, Ticket } from './cluster-owner.js';
import type { DigestTraffic } from './digest-traffic.js';
import type { EventQueue } from './event-queue.js';
import { expectedWork, type Placeable, type Reservation } from './owner.js';
import type { Policy } from './policies.js';
import type { Random } from './random.js';
import type { Statistics } from './statistics.js';
import type { Job } from './workload.js';

export interface ClusterRequestsParts {
  readonly policy: Policy;
  readonly events: EventQueue;
  readonly random: Random;
  readonly statistics: Statistics;
  /** Called after a successful job, so that its conversation can continue. */
  readonly answered: (job: Job) => void;
  readonly owners: ReadonlyMap<OwnerId, ClusterOwner>;
  readonly traffic: DigestTraffic;
}

interface Request {
  readonly job: Job;
  readonly work: Work;
  readonly promptPrefixes: readonly PromptPrefix[];
  readonly accountId: string;
  readonly cost: number;
  /** Providers that failed this request. */
  readonly exclude: Set<ProviderId>;
  readonly excludedProviders: Map<OwnerId, number>;
  /** Coordinator that received the request from the client. */
  entryOwner: ClusterOwner;
  attempts: number;
  /** Incremented by each state change, so that messages about an earlier state are ignored. */
  stateNumber: number;
  readonly tickets: Set<Ticket>;
  /** Number of coordinators that have not yet said whether the request is queued there. */
  unansweredQueues: number;
  /** Whether a queued request is asking for a slot again, after newer digests. */
  isRetrying: boolean;
  lastRetryAt: number;
}

type Ask = Extract<OwnerChoice, { readonly kind: 'ask' }>;

/** One-way network delay between coordinators, in milliseconds. */
export const LINK_MS = 0.5;
/** Same values as `MAX_CONTACTED_COORDINATORS` and `RETRY_INTERVAL_MS` of `ClusterPlacements`. */
const MAX_ASKS = 4;
const RETRY_MS = 100;
/** Maximum prefixes sent to peers, as in `placement-messages`. */
const MAX_PREFIXES = 10;

export class ClusterRequests {
  readonly #parts: ClusterRequestsParts;
  /** Requests that have not ended. Key: `entryOwner`. */
  readonly #requests = new Map<ClusterOwner, Set<Request>>();
  /** Requests that wait in queues. Key: `entryOwner`, then model id. */
  readonly #queued = new Map<ClusterOwner, Map<string, Set<Request>>>();
  readonly counts = { asks: 0, busyReplies: 0, local: 0, remote: 0, queued: 0, declined: 0 };

  constructor(parts: ClusterRequestsParts) {
    this.#parts = parts;
  }

  submit(job: Job, entryOwner: ClusterOwner): void {
    const { policy, random } = this.#parts;
    const work = expectedWork(job, policy, random);
    this.#accept({
      job,
      work,
      promptPrefixes: job.promptPrefixes,
      accountId: `${job.account}`,
      cost: work.promptTokens + work.completionTokens,
      exclude: new Set(),
      excludedProviders: new Map(),
      entryOwner,
      attempts: 0,
      stateNumber: 0,
      tickets: new Set(),
      unansweredQueues: 0,
      isRetrying: false,
      lastRetryAt: 0,
    });
  }

  /** Removes the requests of a dead coordinator. Each returned function resubmits a request at another coordinator. */
  abandon(victim: ClusterOwner): ((entryOwner: ClusterOwner) => void)[] {
    const abandoned = [...(this.#requests.get(victim) ?? [])];
    this.#requests.delete(victim);
    this.#queued.delete(victim);
    for (const request of abandoned) {
      request.stateNumber++;
      request.isRetrying = false;
      const tickets = [...request.tickets];
      request.tickets.clear();
      this.#parts.events.after(PEER_SILENCE_MS, () => {
        for (const ticket of tickets) ticket.owner.cancel(ticket);
      });
    }
    return abandoned.map((request) => (entryOwner) => {
      request.entryOwner = entryOwner;
      this.#accept(request);
    });
  }

  /** Tries again to place the queued requests that a coordinator received, for models whose digests have just arrived there. */
  digestsChanged(entryOwner: ClusterOwner, models: Iterable<string>): void {
    const { now } = this.#parts.events;
    const queued = this.#queued.get(entryOwner);
    if (queued === undefined) return;
    for (const model of models) {
      for (const request of [...(queued.get(model) ?? [])]) {
        if (request.isRetrying || now - request.lastRetryAt < RETRY_MS) continue;
        request.lastRetryAt = now;
        this.#retry(request);
      }
    }
  }

  #accept(request: Request): void {
    const known = this.#requests.get(request.entryOwner);
    if (known === undefined) this.#requests.set(request.entryOwner, new Set([request]));
    else known.add(request);
    this.#place(request);
  }

  #end(request: Request): void {
    request.stateNumber++;
    this.#requests.get(request.entryOwner)?.delete(request);
  }

  #refuse(request: Request, reason: string): void {
    this.#end(request);
    this.#parts.statistics.refused(request.job, reason);
  }

  #place(request: Request): void {
    const { stateNumber } = request;
    const asked = new Set<OwnerId>();
    this.#placeNow(request, asked, {
      isOver: () => request.stateNumber !== stateNumber,
      placed: (owner, reservation) => this.#start(request, owner, reservation),
      full: () => {
        const choice = this.#choose(request, asked.size < MAX_ASKS ? asked : new Set(this.#parts.owners.keys()));
        if (choice.kind === 'none') this.#refuse(request, 'none');
        else this.#queue(request, choice.kind === 'queue' ? choice.owners : []);
      },
    });
  }

  #retry(request: Request): void {
    const { stateNumber } = request;
    request.isRetrying = true;
    this.#placeNow(request, new Set([request.entryOwner.id]), {
      isOver: () => request.stateNumber !== stateNumber,
      placed: (owner, reservation) => this.#granted(request, owner, reservation),
      full: () => {
        request.isRetrying = false;
      },
    });
  }

  /** Asks coordinators in turn for a slot, at most `MAX_ASKS`, and adds them to `asked`. */
  #placeNow(
    request: Request,
    asked: Set<OwnerId>,
    callbacks: { isOver(): boolean; placed(owner: ClusterOwner, reservation: Reservation): void; full(): void },
  ): void {
    const choice = asked.size < MAX_ASKS ? this.#choose(request, asked) : null;
    if (choice?.kind !== 'ask') {
      callbacks.full();
      return;
    }
    asked.add(choice.owner);
    this.#ask(request, choice, (owner, reservation) => {
      if (reservation === null) {
        if (!callbacks.isOver()) this.#placeNow(request, asked, callbacks);
      } else if (callbacks.isOver()) this.#sendBetween(request.entryOwner, owner, () => reservation.release());
      else callbacks.placed(owner, reservation);
    });
  }

  #choose({ entryOwner, job, work, excludedProviders }: Request, excludedOwners: ReadonlySet<OwnerId>): OwnerChoice {
    const { policy, events, random, traffic } = this.#parts;
    traffic.store(entryOwner, entryOwner, job.model, entryOwner.digest(job.model));
    const prefix = policy.constants.affinityWeight > 0 ? entryOwner.prefixes.find(job.promptPrefixes, events.now) : null;
    const demand = { work, contextTokens: 0, imageSize: null, trustFloor: null, excludedOwners, excludedProviders, prefix };
    return chooseOwner(entryOwner.digests.of(job.model), demand, entryOwner.id, events.now, random.next, policy.constants);
  }

  /** Asks a coordinator for a slot. `reply` receives the reservation, or null. */
  #ask(request: Request, choice: Ask, reply: (owner: ClusterOwner, reservation: Reservation | null) => void): void {
    const { entryOwner, job } = request;
    const owner = this.#parts.owners.get(choice.owner) as ClusterOwner;
    const answered = entryOwner.digests.markRequested(owner.id, job.model, choice.classIndex);
    if (owner !== entryOwner) this.counts.asks++;
    this.#sendBetween(entryOwner, owner, () => {
      if (!owner.isAlive) {
        // NATS reports a subject without responders at once.
        this.#sendBetween(entryOwner, owner, () => {
          answered();
          entryOwner.digests.remove(owner.id);
          reply(owner, null);
        });
        return;
      }
      const placed = owner.place(placeableAt(owner, request), choice.expectedWaitMs, choice.loadedOnly);
      const reservation = typeof placed === 'string' ? null : placed;
      const digest = owner !== entryOwner && reservation === null ? owner.digest(job.model) : null;
      if (owner !== entryOwner && reservation === null) this.counts.busyReplies++;
      this.#sendBetween(entryOwner, owner, () => {
        answered();
        if (digest !== null) this.#parts.traffic.store(entryOwner, owner, job.model, digest);
        reply(owner, reservation);
      });
    });
  }

  #queue(request: Request, peers: readonly OwnerId[]): void {
    const { events, owners } = this.#parts;
    const { entryOwner, stateNumber } = request;
    this.counts.queued++;
    this.#setQueued(request, true);
    const targets = [entryOwner, ...peers.map((id) => owners.get(id) as ClusterOwner)];
    request.unansweredQueues = targets.length;
    for (const owner of targets) {
      const ticket = this.#ticket(request, owner);
      request.tickets.add(ticket);
      this.#sendBetween(entryOwner, owner, () => {
        if (request.stateNumber !== stateNumber) return;
        const outcome = owner.isAlive ? owner.enqueue(ticket) : 'queue_full';
        this.#sendBetween(entryOwner, owner, () => {
          if (request.stateNumber !== stateNumber) return;
          request.unansweredQueues--;
          if (outcome !== 'queued') this.#ticketEnded(request, ticket, outcome);
        });
      });
      // The local queue has already granted or refused the request.
      if (request.stateNumber !== stateNumber) return;
    }
    events.after(JOB_TIMINGS.queueMs, () => {
      if (request.stateNumber !== stateNumber) return;
      this.#leaveQueues(request);
      this.#refuse(request, 'timeout');
    });
  }

  #ticket(request: Request, owner: ClusterOwner): Ticket {
    const { entryOwner, accountId, cost, stateNumber } = request;
    const ticket: Ticket = {
      accountId,
      cost,
      request: placeableAt(owner, request),
      owner,
      granted: (reservation) =>
        this.#sendBetween(entryOwner, owner, () => {
          if (request.stateNumber === stateNumber) {
            request.tickets.delete(ticket);
            this.#granted(request, owner, reservation);
            return;
          }
          this.counts.declined++;
          this.#sendBetween(entryOwner, owner, () => reservation.release());
        }),
      displaced: () =>
        this.#sendBetween(entryOwner, owner, () => {
          if (request.stateNumber === stateNumber) this.#ticketEnded(request, ticket, 'queue_full');
        }),
      lost: () =>
        this.#parts.events.after(PEER_SILENCE_MS, () => {
          if (request.stateNumber === stateNumber) this.#ticketEnded(request, ticket, 'lost');
        }),
    };
    return ticket;
  }

  #granted(request: Request, owner: ClusterOwner, reservation: Reservation): void {
    this.#leaveQueues(request);
    this.#start(request, owner, reservation);
  }

  /** Handles the end of a ticket without a slot. After the last ticket, the request is refused or placed anew. */
  #ticketEnded(request: Request, ticket: Ticket, reason: 'hopeless' | 'queue_full' | 'lost'): void {
    request.tickets.delete(ticket);
    if (request.tickets.size > 0 || request.unansweredQueues > 0) return;
    this.#leaveQueues(request);
    if (reason === 'lost') this.#place(request);
    else this.#refuse(request, reason);
  }

  #leaveQueues(request: Request): void {
    request.stateNumber++;
    request.isRetrying = false;
    this.#setQueued(request, false);
    for (const ticket of request.tickets) this.#sendBetween(request.entryOwner, ticket.owner, () => ticket.owner.cancel(ticket));
    request.tickets.clear();
  }

  #setQueued(request: Request, isQueued: boolean): void {
    const { entryOwner, job } = request;
    let models = this.#queued.get(entryOwner);
    if (models === undefined) {
      models = new Map();
      this.#queued.set(entryOwner, models);
    }
    const queued = models.get(job.model) ?? new Set();
    if (isQueued) models.set(job.model, queued.add(request));
    else if (queued.delete(request) && queued.size === 0) models.delete(job.model);
  }

  /** Starts the job: locally at once, at a peer after the one-way delay. */
  #start(request: Request, owner: ClusterOwner, reservation: Reservation): void {
    const { job, entryOwner } = request;
    request.attempts++;
    request.stateNumber++;
    const running = request.stateNumber;
    const isAbandoned = (): boolean => request.stateNumber !== running;
    this.#sendBetween(entryOwner, owner, () => {
      if (isAbandoned()) {
        reservation.release();
        return;
      }
      reservation.start({
        isAbandoned,
        done: () => {
          if (isAbandoned()) return;
          if (owner === entryOwner) this.counts.local++;
          else this.counts.remote++;
          this.#end(request);
          this.#parts.answered(job);
        },
        failed: (reason, providerId) => {
          const detectMs = owner === entryOwner ? 0 : owner.isAlive ? LINK_MS : PEER_SILENCE_MS;
          const failed = (): void => {
            if (isAbandoned()) return;
            if (reason !== 'full' && !request.exclude.has(providerId)) {
              request.exclude.add(providerId);
              request.excludedProviders.set(owner.id, (request.excludedProviders.get(owner.id) ?? 0) + 1);
            }
            request.stateNumber++;
            if (request.attempts >= MAX_ATTEMPTS) this.#refuse(request, 'failed');
            else this.#place(request);
          };
          if (detectMs === 0) failed();
          else this.#parts.events.after(detectMs, failed);
        },
      });
    });
  }

  #sendBetween(one: ClusterOwner, other: ClusterOwner, deliver: () => void): void {
    if (one === other) deliver();
    else this.#parts.events.after(LINK_MS, deliver);
  }
}

/** Request as sent to a coordinator: a peer receives at most `MAX_PREFIXES` prompt prefixes. */
function placeableAt(owner: ClusterOwner, request: Request): Placeable {
  const { job, work, exclude, promptPrefixes, entryOwner } = request;
  return owner === entryOwner ? request : { job, work, exclude, promptPrefixes: extractPrefixes(promptPrefixes, MAX_PREFIXES) };
}
