/**
 * Coordinator of the simulated world: the real model index, throughput estimates, prefix affinity and fair queues, around simulated
 * machines. Requests pass the same steps as in `inference/`: immediate placement or a queue, attempts on other machines, and an
 * end.
 */
import type { ProviderId } from '@inference/protocol';
import {
  DEFAULT_HOST_STATE,
  ModelIndex,
  PrefixAffinity,
  type ProviderFacts,
  type ProviderJobs,
  ThroughputStats,
} from '@inference/scheduler';
import { JOB_TIMINGS, MAX_ATTEMPTS, MAX_WAITING_PER_MODEL } from '../../apps/coordinator/src/inference/job-timings.js';
import { FairQueue, type Queued } from '../../apps/coordinator/src/inference/queue/fair-queue.js';
import { ServiceTimes } from '../../apps/coordinator/src/inference/queue/service-times.js';
import type { EventQueue } from './event-queue.js';
import type { SimulatedMac } from './mac.js';
import { OracleThroughput, type Picked, type Policy, pick } from './policies.js';
import type { Random } from './random.js';
import type { Statistics } from './statistics.js';
import type { Job } from './workload.js';

/** Coordinator state of a machine besides throughput. */
interface Session {
  readonly mac: SimulatedMac;
  usedSlots: number;
  failuresInARow: number;
  heldOffUntil: number;
  placements: number;
  since: number;
}

interface Request extends Queued {
  readonly job: Job;
  readonly work: { readonly promptTokens: number; readonly completionTokens: number };
  readonly exclude: Set<ProviderId>;
  attempts: number;
  /** Whether the request is queued until then. */
  waiting: boolean;
}

const TYPICAL_COMPLETION = 400;
const STREAMED_SHARE = 0.8;
const HOLD_OFF_MS = 1000;
/** Failure rate from which perfect knowledge avoids a record. */
const FAULTY = 0.1;

export class SimulatedCoordinator {
  readonly #policy: Policy;
  readonly #events: EventQueue;
  readonly #chance: Random;
  readonly #statistics: Statistics;
  readonly #answered: (job: Job) => void;
  readonly #macs = new Map<ProviderId, SimulatedMac>();
  readonly speeds: ThroughputStats;
  readonly #boards: ModelIndex<SimulatedMac>;
  readonly #prefixAffinity = new PrefixAffinity();
  readonly #sessions = new Map<ProviderId, Session>();
  readonly #queues = new Map<string, FairQueue<Request>>();
  readonly #times = new ServiceTimes();

  constructor(policy: Policy, events: EventQueue, chance: Random, statistics: Statistics, answered: (job: Job) => void) {
    this.#policy = policy;
    this.#events = events;
    this.#chance = chance;
    this.#statistics = statistics;
    this.#answered = answered;
    this.speeds = policy.kind === 'perfect' ? new OracleThroughput(this.#macs) : new ThroughputStats(policy.constants);
    this.#boards = new ModelIndex<SimulatedMac>(this.speeds, policy.constants);
  }

  join(mac: SimulatedMac): void {
    const { providerId } = mac.registration.identity;
    const faulty = this.#policy.kind === 'perfect' && mac.failureRate > FAULTY;
    this.#macs.set(providerId, mac);
    this.#sessions.set(providerId, {
      mac,
      usedSlots: 0,
      failuresInARow: faulty ? 9 : 0,
      heldOffUntil: 0,
      placements: 0,
      since: this.#events.now,
    });
    this.changed(mac);
  }

  /** A machine disconnected. It reports its own lost jobs. */
  left(mac: SimulatedMac): void {
    this.#boards.remove(mac);
    this.#sessions.delete(mac.registration.identity.providerId);
  }

  /** A machine reported new state. */
  changed(mac: SimulatedMac): void {
    const session = this.#sessions.get(mac.registration.identity.providerId);
    if (session === undefined) return;
    this.#boards.update(mac, factsOf(session), this.#events.now);
    for (const { id } of mac.models) this.#serve(id);
  }

  submit(job: Job): void {
    const work = {
      promptTokens: Math.ceil(job.promptTokens * this.#chance.logNormal(1, 0.15)),
      completionTokens: this.#policy.kind === 'perfect' ? job.completionTokens : TYPICAL_COMPLETION,
    };
    const cost = work.promptTokens + work.completionTokens;
    this.#statistics.arrived(job);
    this.#seat({ job, work, cost, accountId: `${job.account}`, exclude: new Set(), attempts: 0, waiting: false });
  }

  #seat(request: Request): void {
    const { model } = request.job;
    const queue = this.#queues.get(model);
    const expectedMs = this.#times.waitMs(model, queue?.aheadOf(request.accountId) ?? 0, this.#slotsOf(model));
    if ((queue === undefined || (this.#boards.pool(model)?.cold ?? 0) > 0) && this.#tryNow(request, expectedMs)) return;
    if (queue !== undefined && expectedMs !== null && expectedMs > this.#policy.maxWaitFactor * JOB_TIMINGS.queueMs) {
      this.#statistics.refused(request.job, 'hopeless');
    } else this.#wait(request);
  }

  #wait(request: Request): void {
    const { model } = request.job;
    const queue = this.#queues.get(model) ?? new FairQueue<Request>(MAX_WAITING_PER_MODEL);
    this.#queues.set(model, queue);
    const displaced = queue.add(request);
    if (displaced !== null) {
      displaced.waiting = false;
      this.#statistics.refused(displaced.job, 'queue_full');
    }
    if (displaced === request) return;
    request.waiting = true;
    this.#events.after(JOB_TIMINGS.queueMs, () => {
      if (!request.waiting) return;
      request.waiting = false;
      queue.remove(request);
      if (queue.size === 0) this.#queues.delete(model);
      this.#statistics.refused(request.job, 'timeout');
    });
    if (queue.size > 1) this.#serve(model);
  }

  #serve(model: string): void {
    const queue = this.#queues.get(model);
    if (queue === undefined) return;
    const turnMs = this.#times.waitMs(model, 0, this.#slotsOf(model));
    let busy = false;
    for (const request of queue.inOrder()) {
      if (busy && request.exclude.size === 0) continue;
      const placed = this.#tryNow(request, turnMs, () => {
        request.waiting = false;
        queue.served(request);
      });
      if (placed) continue;
      if (request.exclude.size === 0) {
        busy = true;
        if (!queue.some(({ exclude }) => exclude.size > 0)) break;
      }
    }
    if (queue.size === 0) this.#queues.delete(model);
  }

  /** Whether the request was placed or refused. */
  #tryNow(request: Request, expectedWaitMs: number | null, onEnd: () => void = () => {}): boolean {
    const { job, work, exclude } = request;
    const { now } = this.#events;
    const board = this.#boards.poolAt(job.model, now);
    if (board === undefined) {
      onEnd();
      this.#statistics.refused(job, 'none');
      return true;
    }
    const prefixCandidates = this.#prefixAffinity.candidates(job.chain, now, (providerId) => this.#jobsOf(providerId));
    const began = performance.now();
    const picked = pick(
      this.#policy.kind,
      board,
      { providerSerial: null, exclude, trustFloor: null, work, prefixCandidates, expectedWaitMs },
      now,
      this.#chance.next,
    );
    this.#statistics.picked((performance.now() - began) * 1000);
    if (picked === 'busy') return false;
    onEnd();
    if (picked === 'none') this.#statistics.refused(job, 'none');
    else this.#start(request, picked);
    return true;
  }

  #start(request: Request, { mac, costMs, why }: Picked): void {
    const { job } = request;
    const { providerId } = mac.registration.identity;
    const session = this.#sessions.get(providerId) as Session;
    const startedAt = this.#events.now;
    const otherJobs = session.usedSlots;
    request.attempts++;
    session.usedSlots++;
    session.placements++;
    this.#boards.jobPlaced(mac, job.model, startedAt);
    this.#boards.update(mac, factsOf(session), startedAt);
    this.#statistics.placed(job, mac, costMs, why, startedAt);
    let firstContentAt = startedAt;
    mac.take(job, {
      firstToken: () => {
        firstContentAt = this.#events.now;
        this.#statistics.firstToken(job, firstContentAt);
      },
      done: (cachedTokens) => {
        const { now } = this.#events;
        session.usedSlots--;
        if (this.#policy.kind !== 'perfect') session.failuresInARow = 0;
        this.#times.add(job.model, now - startedAt);
        const streamed = this.#chance.happens(STREAMED_SHARE);
        this.#boards.recordAnswer(
          mac,
          job.model,
          {
            promptTokens: job.promptTokens,
            cachedTokens,
            completionTokens: job.completionTokens,
            streamed,
            firstContentMs: (streamed ? firstContentAt : now) - startedAt,
            elapsedMs: now - startedAt,
            otherJobs,
          },
          now,
        );
        const jobs = this.#jobsOf(providerId);
        if (jobs !== null) this.#prefixAffinity.record(job.chain, cachedTokens, providerId, jobs, now);
        this.#statistics.done(job, mac, cachedTokens, now);
        this.#answered(job);
        this.changed(mac);
      },
      failed: (reason) => {
        session.usedSlots--;
        if (reason === 'fault') session.failuresInARow++;
        if (reason === 'full') {
          session.heldOffUntil = this.#events.now + HOLD_OFF_MS;
          this.#events.after(HOLD_OFF_MS + 1, () => this.changed(mac));
        } else request.exclude.add(providerId);
        this.#statistics.failed(reason);
        if (this.#sessions.get(providerId) === session) this.changed(mac);
        if (request.attempts >= MAX_ATTEMPTS) this.#statistics.refused(job, 'failed');
        else this.#seat(request);
      },
    });
  }

  #slotsOf(model: string): number {
    return this.#boards.pool(model)?.slots ?? 0;
  }

  #jobsOf(providerId: ProviderId): ProviderJobs | null {
    const session = this.#sessions.get(providerId);
    return session === undefined ? null : { placements: session.placements, slots: session.mac.slots, since: session.since };
  }
}

function factsOf({ mac, usedSlots, failuresInARow, heldOffUntil }: Session): ProviderFacts {
  const { providerId } = mac.registration.identity;
  return {
    providerId,
    serialNumber: providerId,
    isQuarantined: false,
    isDraining: false,
    keyNotAfter: Number.POSITIVE_INFINITY,
    trustLevel: 'self_signed',
    trustValidUntil: Number.POSITIVE_INFINITY,
    backoffUntil: heldOffUntil,
    slots: mac.slots,
    usedSlots,
    recentFailures: failuresInARow,
    host: mac.hot ? { ...DEFAULT_HOST_STATE, thermal: 'serious' } : DEFAULT_HOST_STATE,
  };
}
