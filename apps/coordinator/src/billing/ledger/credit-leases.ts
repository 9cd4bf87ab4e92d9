/**
 * `CreditLeases` reserves costs of busy accounts in memory, without a transaction per request. Used only on PostgreSQL.
 *
 * A lease is a part of an account's balance that this coordinator may reserve from. The database has a row for each lease.
 *
 * Settlements charge the row. If the row has expired and is deleted, nothing is charged, so no money is spent twice.
 *
 * Leases never grow: a busy account gets another one.
 */
import { randomUUID } from 'node:crypto';
import type { JobId } from '@inference/protocol';
import { endLease, leasedElsewhere, renewLeases, returnUnused, takeLease } from '../../database/ledger/credit-leases.js';
import type { JobReservation } from '../../database/ledger/ledger-records.js';
import type { Database } from '../../database/tables.js';
import { CreditRecalls, type RecallHints } from './credit-recalls.js';
import { ReservationRates } from './reservation-rates.js';

export interface LeasePolicy {
  /** Reservations per second at this coordinator from which an account gets a lease. */
  readonly minPerSecond: number;
  /** Lifetime of a lease after its last renewal, in milliseconds. Renewals are ten times as frequent. Default 20,000. */
  readonly lifetimeMs?: number;
  /** Time without new leases after a lack of balance or a recall, in milliseconds. Default 5000. */
  readonly pauseMs?: number;
  /** Notifications between coordinators about recalls. Without them, renewals detect recalls. */
  readonly hints?: RecallHints;
}

export interface LeasedJob {
  readonly leaseId: string;
  readonly reservation: JobReservation;
  /** If true, the settlement returns the unspent rest to the balance instead of the lease. */
  readonly isLeaseClosing: boolean;
}

interface Lease {
  readonly id: string;
  readonly account: string;
  readonly initialAmount: number;
  /** Initial amount less the charges of settled jobs and returned money. */
  amount: number;
  /** Sum of the maximum costs of running jobs that are reserved from the lease. */
  used: number;
  /** End of the lease in milliseconds, by `performance.now()`. */
  expiresAt: number;
  /** A closing lease takes no further reservations. */
  isClosing: boolean;
  /** Whether the unused part has been returned to the balance. */
  isReturned: boolean;
  /** Whether a job was reserved from the lease since the last renewal. */
  wasUsed: boolean;
}

interface CreditLeasesOptions {
  readonly policy: LeasePolicy;
  readonly database: Database;
  /** Id of this coordinator, as in `ledger_holders`. */
  readonly holder: string;
  readonly transact: <T>(work: (transaction: Database) => Promise<T>) => Promise<T>;
  readonly onError: (error: unknown) => void;
}

/** Default lifetime of a lease. Equals the time after which a coordinator without heartbeats is considered dead. */
const LEASE_LIFETIME_MS = 20_000;
/** Number of renewals in the lifetime of a lease. */
const RENEWALS = 10;
/** A lease covers the account's reservations of this many seconds. */
const SECONDS_COVERED = 3;
/** Minimum available balance, as a multiple of the new lease, so that other coordinators can still reserve. */
const MIN_BALANCE_PER_LEASE = 8;
/** Minimum number of reservations of the current size that a lease covers. */
const MIN_RESERVATIONS = 4;
/** Unused share of a lease's initial amount below which the account gets the next lease. */
const REFILL_SHARE = 1 / 3;
const PAUSE_MS = 5000;
/** Maximum wait for recalled money, in renewal intervals. */
const RECALL_RENEWALS = 2;

export class CreditLeases {
  readonly #options: CreditLeasesOptions;
  readonly #leases = new Map<string, Lease>();
  readonly #byAccount = new Map<string, Lease[]>();
  readonly #jobs = new Map<JobId, { readonly lease: Lease; readonly reservation: JobReservation }>();
  readonly #rates = new ReservationRates();
  readonly #taking = new Map<string, Promise<void>>();
  /** Accounts that get no new lease until this time, by `performance.now()`. */
  readonly #pausedUntil = new Map<string, number>();
  readonly #recalls: CreditRecalls;
  readonly #timer: NodeJS.Timeout;
  #renewing: Promise<void> = Promise.resolve();
  /** Whether the last queued renewal has begun. */
  #mayQueueRenewal = true;
  #isClosed = false;
  readonly #lifetimeMs: number;
  readonly #pauseMs: number;

  constructor(options: CreditLeasesOptions) {
    this.#options = options;
    this.#lifetimeMs = options.policy.lifetimeMs ?? LEASE_LIFETIME_MS;
    this.#pauseMs = options.policy.pauseMs ?? PAUSE_MS;
    const { database, holder, transact, policy } = options;
    this.#recalls = new CreditRecalls({
      database,
      holder,
      transact,
      hints: policy.hints,
      maxMs: (RECALL_RENEWALS * this.#lifetimeMs) / RENEWALS,
    });
    this.#timer = setInterval(() => {
      if (!this.#mayQueueRenewal) return;
      this.#mayQueueRenewal = false;
      this.#afterRenewals(() => this.#renew([...this.#leases.values()]));
    }, this.#lifetimeMs / RENEWALS);
    this.#timer.unref();
    policy.hints?.on((accounts) => this.#afterRenewals(() => this.#returnRecalled(accounts)));
  }

  job(id: JobId): LeasedJob | undefined {
    const job = this.#jobs.get(id);
    return job && { leaseId: job.lease.id, reservation: job.reservation, isLeaseClosing: job.lease.isClosing };
  }

  /** Reserves from a lease. Returns false if none has room, and begins to take a new lease if the account is busy. */
  reserve(reservation: JobReservation): boolean {
    if (this.#isClosed) return false;
    const { accountId, maxCost } = reservation;
    const now = performance.now();
    this.#rates.add(accountId, maxCost, now);
    for (const lease of this.#byAccount.get(accountId) ?? []) {
      if (lease.isClosing || lease.expiresAt < now || lease.amount - lease.used < maxCost) continue;
      lease.used += maxCost;
      lease.wasUsed = true;
      this.#jobs.set(reservation.jobId, { lease, reservation });
      if (lease.amount - lease.used < REFILL_SHARE * lease.initialAmount) this.#takeIfBusy(accountId, maxCost, now);
      return true;
    }
    this.#takeIfBusy(accountId, maxCost, now);
    return false;
  }

  /** Ends a job, whose settlement reduced the lease by `taken`. */
  end(id: JobId, taken: number): void {
    const job = this.#jobs.get(id);
    if (job === undefined) return;
    this.#jobs.delete(id);
    job.lease.used -= job.reservation.maxCost;
    job.lease.amount -= taken;
  }

  /** Closes the lease of a job whose settlement may or may not have succeeded, because the lease's amount is then unknown. */
  closeLeaseOf(id: JobId): void {
    const job = this.#jobs.get(id);
    if (job !== undefined) job.lease.isClosing = true;
  }

  /** Jobs whose reservation from a lease is older than `reservedBefore`, a time in milliseconds since 1970. */
  jobsBefore(reservedBefore: number): JobId[] {
    return [...this.#jobs.values()].flatMap(({ reservation }) => (reservation.reservedAt < reservedBefore ? [reservation.jobId] : []));
  }

  /** Amount of a lease that running jobs have reserved, if this coordinator has the lease. */
  used(leaseId: string): number | undefined {
    return this.#leases.get(leaseId)?.used;
  }

  /**
   * Returns unused leased money to the account's balance. Other coordinators are asked only if their money is needed.
   *
   * Returns false if all leases together have less than `missing`. Rejects with {@link LedgerError} `unavailable` after a timeout.
   */
  async recall(account: string, missing: number): Promise<boolean> {
    await this.#taking.get(account);
    const own = (this.#byAccount.get(account) ?? []).filter(({ amount, used }) => amount > used || used === 0);
    const unused = own.reduce((sum, { amount, used }) => sum + amount - used, 0);
    const elsewhere = unused >= missing ? 0 : await leasedElsewhere(this.#options.database, account, this.#options.holder);
    if (unused + elsewhere < missing) return false;
    this.#pausedUntil.set(account, performance.now() + this.#pauseMs);
    for (const lease of own) await this.#return(lease);
    if (unused >= missing) return true;
    await this.#recalls.recall(account);
    return true;
  }

  /** Ends all leases. Jobs that still run lose their reservations. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await Promise.all(this.#taking.values());
    await this.#renewing;
    for (const { account, id } of [...this.#leases.values()])
      await this.#options.transact((transaction) => endLease(transaction, account, id, 'any'));
    this.#leases.clear();
    this.#byAccount.clear();
  }

  /** Runs after earlier renewals, so that only settlements write to a lease concurrently. */
  #afterRenewals(work: () => Promise<void>): void {
    if (this.#isClosed) return;
    this.#renewing = this.#renewing.then(work).catch(this.#options.onError);
  }

  /** Renews the leases in use, returns unused money, and drops leases whose row was deleted. */
  async #renew(leases: readonly Lease[]): Promise<void> {
    this.#mayQueueRenewal = true;
    for (const lease of leases) {
      if (!lease.wasUsed) lease.isClosing = true;
      lease.wasUsed = false;
      if (lease.isClosing && (!lease.isReturned || lease.used === 0)) await this.#return(lease);
    }
    await this.#extend(leases.filter(({ id }) => this.#leases.has(id)));
    const now = performance.now();
    this.#rates.prune(now);
    for (const [account, until] of this.#pausedUntil) if (until < now) this.#pausedUntil.delete(account);
  }

  /** Checks the rows, because a notification alone does not prove a recall. */
  async #returnRecalled(accounts: ReadonlySet<string>): Promise<void> {
    for (const account of accounts) await this.#taking.get(account);
    await this.#extend([...this.#leases.values()].filter(({ account }) => accounts.has(account)));
  }

  /** Renews leases, and returns the unused money of recalled ones. */
  async #extend(leases: readonly Lease[]): Promise<void> {
    if (leases.length === 0) return;
    const begun = performance.now();
    const renewed = await this.#options.transact((transaction) =>
      renewLeases(
        transaction,
        leases.map(({ id, used }) => ({ id, inUse: used })),
        this.#lifetimeMs,
      ),
    );
    const isRecalled = new Map(renewed.map((row) => [row.id, row.is_recalled === 1]));
    for (const lease of leases) {
      if (!isRecalled.has(lease.id)) this.#forget(lease);
      // Computed from the time before the renewal, so that this coordinator stops using the lease before its row expires.
      lease.expiresAt = begun + this.#lifetimeMs;
      if (!isRecalled.get(lease.id)) continue;
      this.#pausedUntil.set(lease.account, begun + this.#pauseMs);
      await this.#return(lease);
    }
  }

  #takeIfBusy(account: string, maxCost: number, now: number): void {
    const { count, cost } = this.#rates.of(account);
    if (count < this.#options.policy.minPerSecond) return;
    if (this.#taking.has(account) || (this.#pausedUntil.get(account) ?? 0) > now) return;
    const requested = SECONDS_COVERED * cost;
    const amounts = {
      requested,
      min: Math.max(1, MIN_RESERVATIONS * maxCost),
      divisor: MIN_BALANCE_PER_LEASE,
      lifetimeMs: this.#lifetimeMs,
    };
    const taking = this.#take(account, amounts)
      .catch(this.#options.onError)
      .finally(() => this.#taking.delete(account));
    this.#taking.set(account, taking);
  }

  async #take(account: string, amounts: Parameters<typeof takeLease>[2]): Promise<void> {
    const { transact, holder } = this.#options;
    const begun = performance.now();
    // A new id per attempt, so that an attempt with unknown outcome leaves only a row that expires.
    let id = '';
    const amount = await transact((transaction) => {
      id = randomUUID();
      return takeLease(transaction, { id, account, holder }, amounts);
    });
    if (amount === null) {
      this.#pausedUntil.set(account, performance.now() + this.#pauseMs);
      return;
    }
    const lease: Lease = {
      id,
      account,
      initialAmount: amount,
      amount,
      used: 0,
      expiresAt: begun + this.#lifetimeMs,
      isClosing: false,
      isReturned: false,
      wasUsed: true,
    };
    const older = this.#byAccount.get(account) ?? [];
    // Only the newest of the older leases stays open, so that jobs use it up.
    for (const one of older.slice(0, -1)) one.isClosing = true;
    this.#leases.set(id, lease);
    this.#byAccount.set(account, [...older, lease]);
  }

  async #return(lease: Lease): Promise<void> {
    lease.isClosing = true;
    const left = await this.#options.transact((transaction) => returnUnused(transaction, lease.account, lease.id, () => lease.used));
    lease.isReturned = true;
    lease.amount = Math.min(lease.amount, lease.used);
    if (left === 0) this.#forget(lease);
  }

  #forget(lease: Lease): void {
    lease.isClosing = true;
    this.#leases.delete(lease.id);
    const left = (this.#byAccount.get(lease.account) ?? []).filter((one) => one !== lease);
    if (left.length === 0) this.#byAccount.delete(lease.account);
    else this.#byAccount.set(lease.account, left);
  }
}
