/** `SimulatedOwner`: places jobs on the machines that are connected to one coordinator, with the real scheduler. Callers queue and retry. */
import type { ProviderId } from '@inference/protocol';
import {
  DEFAULT_HOST_STATE,
  ModelIndex,
  PrefixAffinity,
  type PromptPrefix,
  type ProviderFacts,
  type ProviderJobs,
  type ProviderPool,
  ThroughputStats,
  type Work,
} from '@inference/scheduler';
import { ServiceTimes } from '../../apps/coordinator/src/inference/queue/service-times.js';
import type { EventQueue } from './event-queue.js';
import type { SimulatedMac } from './mac.js';
import { OracleThroughput, type Picked, type Policy, pick } from './policies.js';
import type { Random } from './random.js';
import type { Statistics } from './statistics.js';
import type { Job } from './workload.js';

/** State of a connected machine at the coordinator, apart from throughput. */
interface Session {
  readonly mac: SimulatedMac;
  usedSlots: number;
  failuresInARow: number;
  backoffUntil: number;
  /** Number of jobs placed since the connection began. */
  placements: number;
  since: number;
}

/** Job to place, with the estimated work, and the machines where it failed (`exclude`). */
export interface Placeable {
  readonly job: Job;
  readonly work: Work;
  readonly exclude: ReadonlySet<ProviderId>;
  /** Hashes of the prompt's prefixes, for prefix affinity. */
  readonly promptPrefixes: readonly PromptPrefix[];
}

export interface RunEvents {
  /** Whether the client gave up; statistics ignore such jobs. */
  isAbandoned?(): boolean;
  /** Called after success, before the free slot is reported to `onCapacity`. */
  done(): void;
  failed(reason: JobFailure, providerId: ProviderId): void;
}

export type JobFailure = 'fault' | 'offline' | 'full';

/** Reserved slot. The holder calls `start` or `release`, once. */
export interface Reservation {
  readonly providerId: ProviderId;
  start(events: RunEvents): void;
  release(): void;
}

export interface OwnerDependencies {
  readonly policy: Policy;
  readonly events: EventQueue;
  readonly random: Random;
  readonly statistics: Statistics;
  /** Called for each model of a changed machine: slots may be free. */
  readonly onCapacity: (model: string) => void;
  /** Called for each model of a machine after an update of the model index. */
  readonly onIndexed?: (model: string) => void;
  /** Called after a success, which left the prompt in a machine's cache. */
  readonly onPrefixesCached?: (promptPrefixes: readonly PromptPrefix[]) => void;
}

const TYPICAL_COMPLETION_TOKENS = 400;
/** Share of the answers that are streamed. */
const STREAMED_SHARE = 0.8;
/** Pause after a machine was full. */
const BACKOFF_MS = 1000;
/** Failure rate above which the policy `perfect` avoids a machine. */
const FAULTY_RATE = 0.1;

export class SimulatedOwner {
  readonly #deps: OwnerDependencies;
  readonly #macs = new Map<ProviderId, SimulatedMac>();
  readonly speeds: ThroughputStats;
  readonly #models: ModelIndex<SimulatedMac>;
  readonly #prefixAffinity = new PrefixAffinity();
  readonly #sessions = new Map<ProviderId, Session>();
  /** Durations of jobs, from which waits are estimated. */
  readonly times = new ServiceTimes();

  constructor(deps: OwnerDependencies) {
    this.#deps = deps;
    const { kind, constants } = deps.policy;
    this.speeds = kind === 'perfect' ? new OracleThroughput(this.#macs) : new ThroughputStats(constants);
    this.#models = new ModelIndex<SimulatedMac>(this.speeds, constants);
  }

  join(mac: SimulatedMac): void {
    const { policy, events } = this.#deps;
    const { providerId } = mac.registration.identity;
    const isFaulty = policy.kind === 'perfect' && mac.failureRate > FAULTY_RATE;
    this.#macs.set(providerId, mac);
    this.#sessions.set(providerId, {
      mac,
      usedSlots: 0,
      // As many failures as have the highest penalty.
      failuresInARow: isFaulty ? 9 : 0,
      backoffUntil: 0,
      placements: 0,
      since: events.now,
    });
    this.changed(mac);
  }

  /** Removes a disconnected machine. The machine itself reports lost jobs as failed. */
  left(mac: SimulatedMac): void {
    this.#models.remove(mac);
    this.#sessions.delete(mac.registration.identity.providerId);
    this.#notifyIndexed(mac);
  }

  connectedMacs(): SimulatedMac[] {
    return [...this.#sessions.values()].map(({ mac }) => mac);
  }

  changed(mac: SimulatedMac): void {
    const session = this.#sessions.get(mac.registration.identity.providerId);
    if (session === undefined) return;
    this.#models.update(mac, factsOf(session), this.#deps.events.now);
    this.#notifyIndexed(mac);
    for (const { id } of mac.models) this.#deps.onCapacity(id);
  }

  /** Null if no machine offers the model. */
  poolAt(model: string): ProviderPool<SimulatedMac> | null {
    return this.#models.poolAt(model, this.#deps.events.now) ?? null;
  }

  slotsOf(model: string): number {
    return this.#models.pool(model)?.slots ?? 0;
  }

  /** Number of machines that could load the model. */
  coldOf(model: string): number {
    return this.#models.pool(model)?.cold ?? 0;
  }

  choose({ job, work, exclude, promptPrefixes }: Placeable, expectedWaitMs: number | null, loadedOnly = false): Picked | 'busy' | 'none' {
    const { policy, events, random, statistics } = this.#deps;
    const pool = this.poolAt(job.model);
    if (pool === null) return 'none';
    const prefixCandidates = this.#prefixAffinity.candidates(promptPrefixes, events.now, (providerId) => this.#jobsOf(providerId));
    const startedAt = performance.now();
    const request = { providerSerial: null, exclude, trustFloor: null, work, prefixCandidates, expectedWaitMs, loadedOnly };
    const picked = pick(policy.kind, pool, request, events.now, random.next);
    statistics.picked((performance.now() - startedAt) * 1000);
    return picked;
  }

  reserve({ job, promptPrefixes }: Placeable, { mac, costMs, why }: Picked): Reservation {
    const { events, statistics } = this.#deps;
    const { providerId } = mac.registration.identity;
    const session = this.#sessions.get(providerId) as Session;
    const otherJobs = session.usedSlots;
    session.usedSlots++;
    session.placements++;
    this.#models.jobPlaced(mac, job.model, events.now);
    this.#models.update(mac, factsOf(session), events.now);
    this.#notifyIndexed(mac);
    return {
      providerId,
      start: (run) => {
        if (this.#sessions.get(providerId) !== session) {
          run.failed('offline', providerId);
          return;
        }
        if (run.isAbandoned?.() !== true) statistics.placed(job, mac, costMs, why, events.now);
        this.#run(job, promptPrefixes, session, otherJobs, run);
      },
      release: () => {
        session.usedSlots--;
        if (this.#sessions.get(providerId) === session) this.changed(mac);
      },
    };
  }

  #run(job: Job, promptPrefixes: readonly PromptPrefix[], session: Session, otherJobs: number, run: RunEvents): void {
    const { policy, events, random, statistics } = this.#deps;
    const { mac } = session;
    const { providerId } = mac.registration.identity;
    const startedAt = events.now;
    let firstContentAt = startedAt;
    mac.take(job, {
      firstToken: () => {
        firstContentAt = events.now;
        if (run.isAbandoned?.() !== true) statistics.firstToken(job, firstContentAt);
      },
      done: (cachedTokens) => {
        const { now } = events;
        session.usedSlots--;
        if (policy.kind !== 'perfect') session.failuresInARow = 0;
        this.times.add(job.model, now - startedAt);
        const streamed = random.happens(STREAMED_SHARE);
        this.#models.recordAnswer(
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
        this.#deps.onPrefixesCached?.(promptPrefixes);
        if (jobs !== null) this.#prefixAffinity.record(promptPrefixes, cachedTokens, providerId, jobs, now);
        if (run.isAbandoned?.() !== true) statistics.done(job, mac, cachedTokens, now);
        run.done();
        this.changed(mac);
      },
      failed: (reason) => {
        session.usedSlots--;
        if (reason === 'fault') session.failuresInARow++;
        if (reason === 'full') {
          session.backoffUntil = events.now + BACKOFF_MS;
          events.after(BACKOFF_MS + 1, () => this.changed(mac));
        }
        statistics.failed(reason);
        if (this.#sessions.get(providerId) === session) this.changed(mac);
        run.failed(reason, providerId);
      },
    });
  }

  #notifyIndexed({ models }: SimulatedMac): void {
    if (this.#deps.onIndexed !== undefined) for (const { id } of models) this.#deps.onIndexed(id);
  }

  #jobsOf(providerId: ProviderId): ProviderJobs | null {
    const session = this.#sessions.get(providerId);
    return session === undefined ? null : { placements: session.placements, slots: session.mac.slots, since: session.since };
  }
}

/** Work that the coordinator expects: an inexact prompt size, and a typical completion size except for `perfect`. */
export function expectedWork(job: Job, policy: Policy, random: Random): Work {
  return {
    promptTokens: Math.ceil(job.promptTokens * random.logNormal(1, 0.15)),
    completionTokens: policy.kind === 'perfect' ? job.completionTokens : TYPICAL_COMPLETION_TOKENS,
  };
}

function factsOf({ mac, usedSlots, failuresInARow, backoffUntil }: Session): ProviderFacts {
  const { providerId } = mac.registration.identity;
  return {
    providerId,
    serialNumber: providerId,
    isQuarantined: false,
    isDraining: false,
    keyNotAfter: Number.POSITIVE_INFINITY,
    trustLevel: 'self_signed',
    trustValidUntil: Number.POSITIVE_INFINITY,
    backoffUntil: backoffUntil,
    slots: mac.slots,
    usedSlots,
    recentFailures: failuresInARow,
    host: mac.hot ? { ...DEFAULT_HOST_STATE, thermal: 'serious' } : DEFAULT_HOST_STATE,
  };
}
