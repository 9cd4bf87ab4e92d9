/** `SimulatedCoordinator`: a network with one coordinator. Uses the real `FairQueue`, and the retry rules of apps/coordinator. */
import type { ProviderId } from '@inference/protocol';
import type { PromptPrefix, ThroughputStats, Work } from '@inference/scheduler';
import { JOB_TIMINGS, MAX_ATTEMPTS, MAX_WAITING_PER_MODEL } from '../../apps/coordinator/src/inference/job-timings.js';
import { FairQueue, type Queued } from '../../apps/coordinator/src/inference/queue/fair-queue.js';
import type { EventQueue } from './event-queue.js';
import type { SimulatedMac } from './mac.js';
import { expectedWork, SimulatedOwner } from './owner.js';
import type { Picked, Policy } from './policies.js';
import type { Random } from './random.js';
import type { Statistics } from './statistics.js';
import type { Job } from './workload.js';

/** What machines and clients see of `SimulatedCoordinator` and `SimulatedCluster`. */
export interface SimulatedNetwork {
  join(mac: SimulatedMac): void;
  left(mac: SimulatedMac): void;
  /** A machine's models or temperature changed. */
  changed(mac: SimulatedMac): void;
  submit(job: Job): void;
}

interface Request extends Queued {
  readonly job: Job;
  readonly work: Work;
  readonly promptPrefixes: readonly PromptPrefix[];
  readonly exclude: Set<ProviderId>;
  attempts: number;
  isQueued: boolean;
}

export class SimulatedCoordinator implements SimulatedNetwork {
  readonly #policy: Policy;
  readonly #events: EventQueue;
  readonly #random: Random;
  readonly #statistics: Statistics;
  readonly #answered: (job: Job) => void;
  readonly #owner: SimulatedOwner;
  readonly #queues = new Map<string, FairQueue<Request>>();

  constructor(policy: Policy, events: EventQueue, random: Random, statistics: Statistics, answered: (job: Job) => void) {
    this.#policy = policy;
    this.#events = events;
    this.#random = random;
    this.#statistics = statistics;
    this.#answered = answered;
    this.#owner = new SimulatedOwner({ policy, events, random, statistics, onCapacity: (model) => this.#serve(model) });
  }

  get speeds(): ThroughputStats {
    return this.#owner.speeds;
  }

  join(mac: SimulatedMac): void {
    this.#owner.join(mac);
  }

  left(mac: SimulatedMac): void {
    this.#owner.left(mac);
  }

  changed(mac: SimulatedMac): void {
    this.#owner.changed(mac);
  }

  submit(job: Job): void {
    const work = expectedWork(job, this.#policy, this.#random);
    const cost = work.promptTokens + work.completionTokens;
    this.#statistics.arrived(job);
    this.#place({
      job,
      work,
      promptPrefixes: job.promptPrefixes,
      cost,
      accountId: `${job.account}`,
      exclude: new Set(),
      attempts: 0,
      isQueued: false,
    });
  }

  #place(request: Request): void {
    const { model } = request.job;
    const queue = this.#queues.get(model);
    const expectedMs = this.#owner.times.waitMs(model, queue?.aheadOf(request.accountId) ?? 0, this.#owner.slotsOf(model));
    if ((queue === undefined || this.#owner.coldOf(model) > 0) && this.#tryNow(request, expectedMs)) return;
    if (queue !== undefined && expectedMs !== null && expectedMs > this.#policy.maxWaitRatio * JOB_TIMINGS.queueMs) {
      this.#statistics.refused(request.job, 'hopeless');
    } else this.#wait(request);
  }

  #wait(request: Request): void {
    const { model } = request.job;
    const queue = this.#queues.get(model) ?? new FairQueue<Request>(MAX_WAITING_PER_MODEL);
    this.#queues.set(model, queue);
    const displaced = queue.add(request);
    if (displaced !== null) {
      displaced.isQueued = false;
      this.#statistics.refused(displaced.job, 'queue_full');
    }
    if (displaced === request) return;
    request.isQueued = true;
    this.#events.after(JOB_TIMINGS.queueMs, () => {
      if (!request.isQueued) return;
      request.isQueued = false;
      queue.remove(request);
      if (queue.size === 0) this.#queues.delete(model);
      this.#statistics.refused(request.job, 'timeout');
    });
    if (queue.size > 1) this.#serve(model);
  }

  #serve(model: string): void {
    const queue = this.#queues.get(model);
    if (queue === undefined) return;
    const turnMs = this.#owner.times.waitMs(model, 0, this.#owner.slotsOf(model));
    let isFirstBusy = false;
    for (const request of queue.inOrder()) {
      if (isFirstBusy && request.exclude.size === 0) continue;
      const placed = this.#tryNow(request, turnMs, () => {
        request.isQueued = false;
        queue.served(request);
      });
      if (placed) continue;
      if (request.exclude.size === 0) {
        isFirstBusy = true;
        if (!queue.some(({ exclude }) => exclude.size > 0)) break;
      }
    }
    if (queue.size === 0) this.#queues.delete(model);
  }

  /** Places or refuses a request, after `onEnd`. Returns false if no slot is free, so that the request must wait. */
  #tryNow(request: Request, expectedWaitMs: number | null, onEnd: () => void = () => {}): boolean {
    const picked = this.#owner.choose(request, expectedWaitMs);
    if (picked === 'busy') return false;
    onEnd();
    if (picked === 'none') this.#statistics.refused(request.job, 'none');
    else this.#start(request, picked);
    return true;
  }

  #start(request: Request, picked: Picked): void {
    const { job } = request;
    request.attempts++;
    this.#owner.reserve(request, picked).start({
      done: () => this.#answered(job),
      failed: (reason, providerId) => {
        if (reason !== 'full') request.exclude.add(providerId);
        if (request.attempts >= MAX_ATTEMPTS) this.#statistics.refused(job, 'failed');
        else this.#place(request);
      },
    });
  }
}
