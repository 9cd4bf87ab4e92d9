/** `Statistics`: collects events of a simulator run and computes the report. Times in milliseconds of virtual time. */
import { CHIPS, MODELS } from './hardware.js';
import type { SimulatedMac } from './mac.js';
import type { Picked } from './policies.js';
import type { Job } from './workload.js';

export interface Report {
  readonly policy: string;
  readonly requests: number;
  readonly refusedShare: number;
  /** Refused requests, by reason. */
  readonly refusals: Readonly<Record<string, number>>;
  /** Share of the machines' online time with a running job. */
  readonly utilisation: number;
  /** From arrival to the last placement of successful jobs. */
  readonly wait: Spread;
  /** From arrival to the first token. */
  readonly firstToken: Spread;
  /** From arrival to the end. */
  readonly completion: Spread;
  /** Jain's index of the accounts' mean quality (fastest possible time / actual time). 1 if all are equal. */
  readonly fairness: number;
  /**
   * Share of machines with an idle hour, among machines online for at least an hour. NaN in shorter runs.
   *
   * Excludes failing machines, and machines without a loaded model.
   */
  readonly idleShare: number;
  /** Mean expected cost of the placements. */
  readonly costMs: number;
  /** Share of prompt tokens served from prefix caches. */
  readonly cachedShare: number;
  /** How often machines loaded a model. */
  readonly loads: number;
  /** Jobs that failed by a machine's fault, per thousand requests. */
  readonly faults: number;
  /** Jobs per hour of misreporting machines, relative to other machines. */
  readonly misreporting: number;
  /** Placements by the scheduler's reason. */
  readonly why: Readonly<Record<string, number>>;
  /** Real time per placement decision, in microseconds. */
  readonly pickUs: number;
}

export interface Spread {
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
}

const HOUR_MS = 3_600_000;
/** Minimum requests of an account that counts for fairness. */
const MIN_REQUESTS = 10;

/** Minimum time per token, by model: a single job on the fastest chip. */
const FASTEST = new Map(
  MODELS.map(({ id, activeGigabytes, activeParameters }) => [
    id,
    {
      promptMs: 1000 / Math.max(...CHIPS.map(({ prefill8b }) => (prefill8b * 8) / activeParameters)),
      answerMs: 1000 / Math.min(250, Math.max(...CHIPS.map((chip) => (chip.efficiency * chip.bandwidthGbs) / activeGigabytes))),
    },
  ]),
);

interface MacRecord {
  lastWorkAt: number;
  since: number;
  onlineMs: number;
  jobs: number;
  wasOnlineLong: boolean;
  wasIdleLong: boolean;
}

export class Statistics {
  /** Arrivals before this time are warm-up. */
  readonly #from: number;
  readonly #now: () => number;
  readonly #waits: number[] = [];
  readonly #firstTokens: number[] = [];
  readonly #completions: number[] = [];
  readonly #accounts = new Map<number, { requests: number; quality: number }>();
  readonly #macs = new Map<SimulatedMac, MacRecord>();
  readonly #refusals: Record<string, number> = {};
  readonly #why: Record<string, number> = {};
  readonly #placedAt = new Map<Job, number>();
  #requests = 0;
  #refused = 0;
  #costs = 0;
  #placements = 0;
  #prompt = 0;
  #cached = 0;
  #faults = 0;
  #picks = 0;
  #pickUs = 0;

  constructor(from: number, now: () => number) {
    this.#from = from;
    this.#now = now;
  }

  arrived(job: Job): void {
    if (job.arrivedAt < this.#from) return;
    this.#requests++;
    this.#account(job).requests++;
  }

  picked(us: number): void {
    this.#picks++;
    this.#pickUs += us;
  }

  placed(job: Job, mac: SimulatedMac, costMs: number, why: Picked['why'], now: number): void {
    this.#endIdle(mac);
    const record = this.#macs.get(mac);
    if (record !== undefined) record.jobs++;
    if (job.arrivedAt < this.#from) return;
    this.#placedAt.set(job, now);
    this.#costs += costMs;
    this.#placements++;
    this.#why[why] = (this.#why[why] ?? 0) + 1;
  }

  firstToken(job: Job, now: number): void {
    if (job.arrivedAt >= this.#from) this.#firstTokens.push(now - job.arrivedAt);
  }

  done(job: Job, _mac: SimulatedMac, cachedTokens: number, now: number): void {
    const placedAt = this.#placedAt.get(job);
    if (placedAt === undefined) return;
    this.#placedAt.delete(job);
    this.#waits.push(placedAt - job.arrivedAt);
    this.#completions.push(now - job.arrivedAt);
    this.#prompt += job.promptTokens;
    this.#cached += cachedTokens;
    const best = FASTEST.get(job.model) ?? { promptMs: 0, answerMs: 0 };
    const minMs = job.promptTokens * best.promptMs + job.completionTokens * best.answerMs;
    this.#account(job).quality += minMs / Math.max(minMs, now - job.arrivedAt);
  }

  failed(reason: 'fault' | 'offline' | 'full'): void {
    if (reason === 'fault') this.#faults++;
  }

  refused(job: Job, reason: string): void {
    if (job.arrivedAt < this.#from) return;
    this.#placedAt.delete(job);
    this.#refused++;
    this.#refusals[reason] = (this.#refusals[reason] ?? 0) + 1;
  }

  joined(mac: SimulatedMac): void {
    const now = this.#now();
    const known = this.#macs.get(mac);
    if (known === undefined) {
      this.#macs.set(mac, { lastWorkAt: now, since: now, onlineMs: 0, jobs: 0, wasOnlineLong: false, wasIdleLong: false });
    } else Object.assign(known, { lastWorkAt: now, since: now });
  }

  left(mac: SimulatedMac): void {
    this.#endIdle(mac);
    const record = this.#macs.get(mac);
    if (record === undefined) return;
    const onlineMs = this.#now() - record.since;
    record.onlineMs += onlineMs;
    if (onlineMs >= HOUR_MS) record.wasOnlineLong = true;
  }

  /** Ends the run and computes the report. Online time of machines ends now. */
  report(policy: string): Report {
    for (const [mac] of this.#macs) if (mac.online) this.left(mac);
    const macs = [...this.#macs];
    const steady = macs.filter(([mac, { wasOnlineLong }]) => wasOnlineLong && mac.failureRate < 0.1 && mac.hasModelInMemory);
    const jobRate = (isMisreporting: boolean): number => {
      const some = macs.filter(([mac, { onlineMs }]) => mac.isMisreporting === isMisreporting && onlineMs > 0);
      return sum(some.map(([, { jobs }]) => jobs)) / Math.max(1, sum(some.map(([, { onlineMs }]) => onlineMs)));
    };
    const qualities = [...this.#accounts.values()]
      .filter(({ requests }) => requests >= MIN_REQUESTS)
      .map(({ requests, quality }) => quality / requests);
    return {
      policy,
      requests: this.#requests,
      refusedShare: this.#refused / Math.max(1, this.#requests),
      refusals: this.#refusals,
      utilisation: sum(macs.map(([{ busyMs }]) => busyMs)) / Math.max(1, sum(macs.map(([, { onlineMs }]) => onlineMs))),
      wait: spread(this.#waits),
      firstToken: spread(this.#firstTokens),
      completion: spread(this.#completions),
      fairness: jain(qualities),
      idleShare: steady.filter(([, { wasIdleLong }]) => wasIdleLong).length / steady.length,
      costMs: this.#costs / Math.max(1, this.#placements),
      cachedShare: this.#cached / Math.max(1, this.#prompt),
      loads: sum(macs.map(([{ loads }]) => loads)),
      faults: (1000 * this.#faults) / Math.max(1, this.#requests),
      misreporting: jobRate(true) / jobRate(false),
      why: this.#why,
      pickUs: this.#pickUs / Math.max(1, this.#picks),
    };
  }

  #endIdle(mac: SimulatedMac): void {
    const record = this.#macs.get(mac);
    if (record === undefined) return;
    const now = this.#now();
    if (now - record.lastWorkAt >= HOUR_MS) record.wasIdleLong = true;
    record.lastWorkAt = now;
  }

  #account({ account }: Job): { requests: number; quality: number } {
    let known = this.#accounts.get(account);
    if (known === undefined) {
      known = { requests: 0, quality: 0 };
      this.#accounts.set(account, known);
    }
    return known;
  }
}

/** Jain's fairness index: 1 if all values are equal, 1/n if all but one are zero. */
export function jain(values: readonly number[]): number {
  const squares = sum(values.map((value) => value * value));
  return squares === 0 ? 1 : sum(values) ** 2 / (values.length * squares);
}

function spread(values: readonly number[]): Spread {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { mean: sum(values) / Math.max(1, values.length), p50: at(0.5), p99: at(0.99) };
}

function sum(values: readonly number[]): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
