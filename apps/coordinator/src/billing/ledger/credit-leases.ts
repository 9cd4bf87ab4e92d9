/**
 * Leases of busy accounts, in memory: reservations are taken from a lease without a transaction, and settled against its row.
 *
 * The row is the authority. A settlement without its row charges nothing, like one of a released job, so a lost lease can never
 * spend money twice. A lease never grows; a busy account takes the next one while the last drains.
 */
import { randomUUID } from 'node:crypto';
import type { JobId } from '@inference/protocol';
import { endLease, renewLease, takeLease } from '../../database/ledger/credit-leases.js';
import type { JobReservation } from '../../database/ledger/ledger-records.js';
import type { Database } from '../../database/tables.js';

export interface LeasePolicy {
  /** Reservations per second of an account from which on the account gets a lease. */
  readonly minPerSecond: number;
  /** Time that a lease outlives its last renewal, in milliseconds; five renewals fit in. Default 10,000. */
  readonly ms?: number;
}

export interface LeasedJob {
  readonly leaseId: string;
  readonly reservation: JobReservation;
}

interface Lease {
  readonly id: string;
  readonly account: string;
  amount: number;
  /** Sum of the maximum costs of running jobs. */
  used: number;
  /** By `performance.now()`. */
  freshUntil: number;
  /** Whether the lease gets no more reservations and ends with its last job. */
  isClosing: boolean;
  wasUsed: boolean;
}

interface Rate {
  begunAt: number;
  count: number;
  cost: number;
}

interface CreditLeasesOptions {
  readonly policy: LeasePolicy;
  readonly database: Database;
  readonly holder: string;
  readonly transact: <T>(work: (transaction: Database) => Promise<T>) => Promise<T>;
  readonly onError: (error: unknown) => void;
}

const LEASE_MS = 10_000;
const RENEWALS = 5;
const RATE_MS = 1000;
/** Seconds of an account's reservations that a lease covers. */
const SECONDS_COVERED = 3;
/** A lease is at most this part of the available balance, so other coordinators can still reserve. */
const SHARE = 8;
/** A lease covers at least so many of the reservations that asked for the lease. */
const MIN_RESERVATIONS = 4;

export class CreditLeases {
  readonly #options: CreditLeasesOptions;
  readonly #leases = new Map<string, Lease>();
  readonly #byAccount = new Map<string, Lease[]>();
  readonly #jobs = new Map<JobId, LeasedJob>();
  readonly #rates = new Map<string, Rate>();
  readonly #taking = new Map<string, Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  #renewing: Promise<void> | null = null;
  #closed = false;
  readonly #ms: number;

  constructor(options: CreditLeasesOptions) {
    this.#options = options;
    this.#ms = options.policy.ms ?? LEASE_MS;
    this.#timer = setInterval(() => {
      this.#renewing ??= this.renew()
        .catch(options.onError)
        .finally(() => {
          this.#renewing = null;
        });
    }, this.#ms / RENEWALS);
    this.#timer.unref();
  }

  job(id: JobId): LeasedJob | undefined {
    return this.#jobs.get(id);
  }

  /** Whether the reservation was taken from a lease. If not, an account busy enough gets a lease for later ones. */
  reserve(reservation: JobReservation): boolean {
    if (this.#closed) return false;
    const { accountId, maxCost } = reservation;
    const now = performance.now();
    this.#count(accountId, maxCost, now);
    for (const lease of this.#byAccount.get(accountId) ?? []) {
      if (lease.isClosing || lease.freshUntil < now || lease.amount - lease.used < maxCost) continue;
      lease.used += maxCost;
      lease.wasUsed = true;
      this.#jobs.set(reservation.jobId, { leaseId: lease.id, reservation });
      return true;
    }
    this.#takeIfBusy(accountId, maxCost);
    return false;
  }

  /** Ends a job that cost so much. */
  end(id: JobId, cost: number): void {
    const job = this.#jobs.get(id);
    if (job === undefined) return;
    this.#jobs.delete(id);
    const lease = this.#leases.get(job.leaseId);
    if (lease === undefined) return;
    lease.used -= job.reservation.maxCost;
    lease.amount -= cost;
  }

  /** After a settlement with an unknown outcome, the amount left is unknown. */
  doubt(id: JobId): void {
    const lease = this.#leases.get(this.#jobs.get(id)?.leaseId ?? '');
    if (lease !== undefined) lease.isClosing = true;
  }

  /** Leased jobs reserved before `olderThan`. */
  jobsBefore(olderThan: number): JobId[] {
    return [...this.#jobs.values()].flatMap(({ reservation }) => (reservation.reservedAt < olderThan ? [reservation.jobId] : []));
  }

  /** Part of a lease reserved by running jobs; undefined for a lease of another coordinator. */
  used(leaseId: string): number | undefined {
    return this.#leases.get(leaseId)?.used;
  }

  /** Resolves when no lease is being taken. */
  async settled(): Promise<void> {
    await Promise.all(this.#taking.values());
  }

  /** Renews leases in use, ends unused ones, and forgets lost ones. */
  async renew(): Promise<void> {
    for (const lease of [...this.#leases.values()]) {
      if (lease.used === 0 && (lease.isClosing || !lease.wasUsed)) {
        await this.#end(lease);
        continue;
      }
      lease.wasUsed = false;
      const begun = performance.now();
      if (await renewLease(this.#options.database, lease.id, lease.used, this.#ms)) lease.freshUntil = begun + this.#ms;
      else this.#forget(lease);
    }
    for (const [account, { begunAt }] of this.#rates) if (performance.now() - begunAt > 2 * RATE_MS) this.#rates.delete(account);
  }

  /** Returns leases without running jobs to the account's balance. Resolves to whether there were any. */
  async endUnused(account: string): Promise<boolean> {
    const unused = (this.#byAccount.get(account) ?? []).filter(({ used }) => used === 0);
    for (const lease of unused) await this.#end(lease);
    return unused.length > 0;
  }

  /** Ends all leases. Jobs that still run lose their reservations. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#renewing;
    await this.settled();
    for (const lease of [...this.#leases.values()]) await this.#end(lease);
  }

  #count(account: string, cost: number, now: number): void {
    const rate = this.#rates.get(account);
    if (rate === undefined || now - rate.begunAt > RATE_MS) this.#rates.set(account, { begunAt: now, count: 1, cost });
    else {
      rate.count++;
      rate.cost += cost;
    }
  }

  #takeIfBusy(account: string, maxCost: number): void {
    const rate = this.#rates.get(account);
    if (rate === undefined || rate.count < this.#options.policy.minPerSecond || this.#taking.has(account)) return;
    for (const lease of this.#byAccount.get(account) ?? []) lease.isClosing = true;
    const amounts = { wanted: SECONDS_COVERED * rate.cost, min: Math.max(1, MIN_RESERVATIONS * maxCost), share: SHARE, ms: this.#ms };
    const taking = this.#take(account, amounts)
      .catch(this.#options.onError)
      .finally(() => this.#taking.delete(account));
    this.#taking.set(account, taking);
  }

  async #take(account: string, amounts: Parameters<typeof takeLease>[2]): Promise<void> {
    const { transact, holder } = this.#options;
    const begun = performance.now();
    // A new id per attempt: an attempt with a lost outcome then expires by itself.
    let id = '';
    const amount = await transact((transaction) => {
      id = randomUUID();
      return takeLease(transaction, { id, account, holder }, amounts);
    });
    if (amount === null) return;
    const lease: Lease = { id, account, amount, used: 0, freshUntil: begun + this.#ms, isClosing: false, wasUsed: true };
    this.#leases.set(id, lease);
    this.#byAccount.set(account, [...(this.#byAccount.get(account) ?? []), lease]);
  }

  async #end(lease: Lease): Promise<void> {
    lease.isClosing = true;
    await this.#options.transact((transaction) => endLease(transaction, lease.account, lease.id, 'any'));
    this.#forget(lease);
  }

  #forget(lease: Lease): void {
    this.#leases.delete(lease.id);
    const left = (this.#byAccount.get(lease.account) ?? []).filter((one) => one !== lease);
    if (left.length === 0) this.#byAccount.delete(lease.account);
    else this.#byAccount.set(lease.account, left);
  }
}
