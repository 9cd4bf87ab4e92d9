/**
 * `CreditLeases` reserves the costs of jobs in memory, without a transaction per request, for accounts with many requests.
 *
 * A credit lease is a part of an account's balance from which only this coordinator may reserve. Settlements charge the lease's row in the
 * database. If the row has expired and was deleted, they charge nothing, so that no money is spent twice.
 */
import { randomUUID } from 'node:crypto';
import type { JobId } from '@inference/protocol';
import { endLease, leasedElsewhere, renewLeases, returnUnused, takeLease } from '../../database/ledger/credit-leases.js';
import type { JobReservation } from '../../database/ledger/ledger-records.js';
import { HOLDER_TIMEOUT_MS } from '../../database/ledger/reservation-holders.js';
import type { Database } from '../../database/tables.js';
import { CreditRecalls, type RecallHints } from './credit-recalls.js';
import { ReservationRates } from './reservation-rates.js';

export interface LeasePolicy {
  /** Minimum reservations per second at this coordinator for which an account gets leases. */
  readonly minPerSecond: number;
  /** Lifetime of a lease after its last renewal, in milliseconds. Renewed ten times in this time. Default 20,000. */
  readonly lifetimeMs?: number;
  /** Time without new leases after a balance was too low or a lease was recalled, in milliseconds. Default 5000. */
  readonly pauseMs?: number;
  /** Notifications between coordinators about recalls of leases. Without them, renewals detect recalls. */
  readonly hints?: RecallHints;
}

/** Running job whose cost is reserved from a lease. */
export interface LeasedJob {
  readonly leaseId: string;
  readonly reservation: JobReservation;
  /** If true, the settlement returns the unspent rest of the reservation to the balance instead of the lease. */
  readonly isLeaseClosing: boolean;
}

interface Lease {
  readonly id: string;
  readonly account: string;
  readonly initialAmount: number;
  /** Initial amount less charges and returned money. */
  amount: number;
  /** Part of `amount` reserved by running jobs. */
  used: number;
  /** End of the lease in milliseconds, by `performance.now()`. */
  expiresAt: number;
  /** Whether the lease takes no further reservations, and ends after its running jobs. */
  isClosing: boolean;
  /** Whether the part that no job had reserved was returned to the balance. */
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

const LEASE_LIFETIME_MS = HOLDER_TIMEOUT_MS;
const RENEWALS_PER_LIFETIME = 10;
/** Requested amount of a lease, as seconds of the account's reservations. */
const SECONDS_COVERED = 3;
/** Minimum available balance, as a multiple of a new lease, so that other coordinators can still reserve. */
const MIN_BALANCE_PER_LEASE = 8;
/** Minimum amount of a lease, as a multiple of the maximum cost of the current job. */
const MIN_RESERVATIONS = 4;
/** Unused share of a lease's initial amount below which a busy account gets a further lease. */
const REFILL_SHARE = 1 / 3;
const PAUSE_MS = 5000;
/** Maximum wait for money of other coordinators' leases, in renewal intervals. */
const RECALL_RENEWALS = 2;

export class CreditLeases {
  readonly #options: CreditLeasesOptions;
  readonly #leaseById = new Map<string, Lease>();
  readonly #leasesByAccount = new Map<string, Lease[]>();
  readonly #jobById = new Map<JobId, { readonly lease: Lease; readonly reservation: JobReservation }>();
  readonly #rates = new ReservationRates();
  /** Leases that are being taken from the database. Key: account. */
  readonly #taking = new Map<string, Promise<void>>();
  /** Time before which an account gets no new lease, by `performance.now()`. Key: account. */
  readonly #pausedUntil = new Map<string, number>();
  readonly #recalls: CreditRecalls;
  readonly #timer: NodeJS.Timeout;
  /** End of the last renewal that has begun or is queued. */
  #renewing: Promise<void> = Promise.resolve();
  /** Whether the periodic renewal is queued behind another one. */
  #isRenewalQueued = false;
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
      maxMs: (RECALL_RENEWALS * this.#lifetimeMs) / RENEWALS_PER_LIFETIME,
    });
    this.#timer = setInterval(() => {
      if (this.#isRenewalQueued) return;
      this.#isRenewalQueued = true;
      this.#afterRenewals(() => this.#renew([...this.#leaseById.values()]));
    }, this.#lifetimeMs / RENEWALS_PER_LIFETIME);
    this.#timer.unref();
    policy.hints?.on((accounts) => this.#afterRenewals(() => this.#returnRecalled(accounts)));
  }

  job(id: JobId): LeasedJob | undefined {
    const job = this.#jobById.get(id);
    return job && { leaseId: job.lease.id, reservation: job.reservation, isLeaseClosing: job.lease.isClosing };
  }

  /** Reserves from a lease. Returns false if none has room. Begins to take a further lease if little is left and the account is busy. */
  reserve(reservation: JobReservation): boolean {
    if (this.#isClosed) return false;
    const { accountId, maxCost } = reservation;
    const now = performance.now();
    this.#rates.add(accountId, maxCost, now);
    for (const lease of this.#leasesByAccount.get(accountId) ?? []) {
      if (lease.isClosing || lease.expiresAt < now || lease.amount - lease.used < maxCost) continue;
      lease.used += maxCost;
      lease.wasUsed = true;
      this.#jobById.set(reservation.jobId, { lease, reservation });
      if (lease.amount - lease.used < REFILL_SHARE * lease.initialAmount) this.#takeIfBusy(accountId, maxCost, now);
      return true;
    }
    this.#takeIfBusy(accountId, maxCost, now);
    return false;
  }

  /** Ends a job's reservation. `taken`: amount by which its settlement reduced the lease; 0 without a charge. */
  end(id: JobId, taken: number): void {
    const job = this.#jobById.get(id);
    if (job === undefined) return;
    this.#jobById.delete(id);
    job.lease.used -= job.reservation.maxCost;
    job.lease.amount -= taken;
  }

  /** Closes the lease of a job whose settlement may or may not have been stored, so that the amount left in the lease is unknown. */
  closeLeaseOf(id: JobId): void {
    const job = this.#jobById.get(id);
    if (job !== undefined) job.lease.isClosing = true;
  }

  /** Jobs whose reservation from a lease is older than `reservedBefore`, a time in milliseconds since 1970. */
  jobsBefore(reservedBefore: number): JobId[] {
    return [...this.#jobById.values()].flatMap(({ reservation }) => (reservation.reservedAt < reservedBefore ? [reservation.jobId] : []));
  }

  /** Amount of a lease that running jobs have reserved, if this coordinator has the lease. */
  used(leaseId: string): number | undefined {
    return this.#leaseById.get(leaseId)?.used;
  }

  /**
   * Returns unused money of the account's leases to its balance, of other coordinators' leases only if the own ones have too little.
   *
   * Resolves to false, and returns nothing, if own unused money and others' leases are less than `missing` micro-USD. Rejects with
   * {@link LedgerError} `unavailable` if the other coordinators do not answer in time.
   */
  async recall(account: string, missing: number): Promise<boolean> {
    await this.#taking.get(account);
    const own = (this.#leasesByAccount.get(account) ?? []).filter(({ amount, used }) => amount > used || used === 0);
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
    for (const { account, id } of [...this.#leaseById.values()])
      await this.#options.transact((transaction) => endLease(transaction, account, id, { onlyIfExpired: false }));
    this.#leaseById.clear();
    this.#leasesByAccount.clear();
  }

  /** Runs the work after earlier renewals. */
  #afterRenewals(work: () => Promise<void>): void {
    if (this.#isClosed) return;
    this.#renewing = this.#renewing.then(work).catch(this.#options.onError);
  }

  /** Renews the leases. Closes leases without a new reservation since the last renewal, and returns unused money of closing ones. */
  async #renew(leases: readonly Lease[]): Promise<void> {
    this.#isRenewalQueued = false;
    for (const lease of leases) {
      if (!lease.wasUsed) lease.isClosing = true;
      lease.wasUsed = false;
      if (lease.isClosing && (!lease.isReturned || lease.used === 0)) await this.#return(lease);
    }
    // `#return` forgets a lease that has no money left.
    await this.#extend(leases.filter(({ id }) => this.#leaseById.has(id)));
    const now = performance.now();
    this.#rates.prune(now);
    for (const [account, until] of this.#pausedUntil) if (until < now) this.#pausedUntil.delete(account);
  }

  /** Renews the leases of notified accounts, because only their rows say whether they are recalled. */
  async #returnRecalled(accounts: ReadonlySet<string>): Promise<void> {
    for (const account of accounts) await this.#taking.get(account);
    await this.#extend([...this.#leaseById.values()].filter(({ account }) => accounts.has(account)));
  }

  /** Moves the expiry of leases. Forgets leases whose row was deleted, and returns the unused money of recalled ones. */
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
    const isRecalledById = new Map(renewed.map((row) => [row.id, row.is_recalled === 1]));
    for (const lease of leases) {
      const isRecalled = isRecalledById.get(lease.id);
      if (isRecalled === undefined) {
        this.#forget(lease);
        continue;
      }
      // Computed from the time before the renewal, so that this coordinator stops using the lease before its row expires.
      lease.expiresAt = begun + this.#lifetimeMs;
      if (!isRecalled) continue;
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
    // `transact` may repeat the work. If the commit of a repeated try succeeded after all, its row, with another id, just expires.
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
    const older = this.#leasesByAccount.get(account) ?? [];
    // The newest of the older leases stays open, so that jobs use it up.
    for (const one of older.slice(0, -1)) one.isClosing = true;
    this.#leaseById.set(id, lease);
    this.#leasesByAccount.set(account, [...older, lease]);
  }

  /** Closes a lease and returns its unused part to the balance. The lease ends if no job uses the rest. */
  async #return(lease: Lease): Promise<void> {
    lease.isClosing = true;
    const left = await this.#options.transact((transaction) => returnUnused(transaction, lease.account, lease.id, () => lease.used));
    lease.isReturned = true;
    lease.amount = Math.min(lease.amount, lease.used);
    if (left === 0) this.#forget(lease);
  }

  #forget(lease: Lease): void {
    lease.isClosing = true;
    this.#leaseById.delete(lease.id);
    const left = (this.#leasesByAccount.get(lease.account) ?? []).filter((one) => one !== lease);
    if (left.length === 0) this.#leasesByAccount.delete(lease.account);
    else this.#leasesByAccount.set(lease.account, left);
  }
}
