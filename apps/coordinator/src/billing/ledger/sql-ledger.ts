/**
 * `openLedger` opens the ledger on SQLite or PostgreSQL, which several coordinators may share.
 *
 * Concurrent steps share transactions. Between these, only credit leases (parts of balances lent to one coordinator) are kept in memory.
 * Heartbeats show which coordinators are alive, so that others release the reservations of dead ones.
 */
import { randomUUID } from 'node:crypto';
import type { JobId } from '@inference/protocol';
import { deferSync, syncToDisk } from '../../database/connection/deferred-sync.js';
import { dialectOf } from '../../database/connection/dialect.js';
import { isTransient, withRetries } from '../../database/connection/transaction-retry.js';
import { MAX_MATURITY_DAYS } from '../../database/ledger/activity.js';
import { endLease, expiredLeases } from '../../database/ledger/credit-leases.js';
import { foldJobs } from '../../database/ledger/fold-jobs.js';
import { balanceFromRow } from '../../database/ledger/ledger-records.js';
import { LedgerRepository } from '../../database/ledger/ledger-repository.js';
import { linkProvider } from '../../database/ledger/link-provider.js';
import {
  abandonedJobs,
  HOLDER_HEARTBEAT_MS,
  leaseGraceMs,
  ownReservedJobs,
  recordHolder,
  removeHolder,
} from '../../database/ledger/reservation-holders.js';
import { advanceWindows } from '../../database/ledger/totals.js';
import type { SealedNonce } from '../../database/sealed-nonce-repository.js';
import type { Database } from '../../database/tables.js';
import { RepeatedTask } from '../../repeated-task.js';
import { HOUR_MS } from '../../time-units.js';
import { type MicroUsd, microUsd } from '../micro-usd.js';
import { CreditLeases, type LeasePolicy } from './credit-leases.js';
import { GroupCommit, type StepResult } from './group-commit.js';
import type {
  Balance,
  Deposit,
  DepositOutcome,
  EndWithdrawalOutcome,
  Ledger,
  PendingEarnings,
  Reservation,
  ReserveOutcome,
  Settlement,
  SettleOutcome,
  WithdrawalEnd,
  WithdrawalOutcome,
  WithdrawalRequest,
} from './ledger.js';
import { LedgerDraft } from './ledger-draft.js';
import { LedgerError } from './ledger-error.js';
import { applyStep, firstPendingDay, jobReservation, type LedgerRules, maturesAt, withdrawableOf } from './ledger-policy.js';
import { checkAccount, checkStep, rowKeysOf, type Step, type StepOutcome, type StepOutcomes } from './ledger-steps.js';

export interface LedgerOptions {
  readonly database: Database;
  /** Percentage of a job's cost that its provider earns, 0 to 100. */
  readonly providerSharePercent: number;
  readonly ownMachinesFree: boolean;
  /** Days until earnings can be withdrawn: 0 (at once) to {@link MAX_MATURITY_DAYS}. Default 0. */
  readonly maturityDays?: number;
  /**
   * Whether reservations and nonces have their own batches on PostgreSQL, so that they never wait for other steps. Default false.
   *
   * The order of reservations and other steps is then undefined, unless the caller awaits the other steps.
   */
  readonly separateReservations?: boolean;
  /** Lets this coordinator reserve for busy accounts in memory, from credit leases. Default: no leases. */
  readonly leases?: LeasePolicy;
  /** Receives errors of background work: heartbeats, roll-ups and the release of abandoned reservations. */
  readonly onError: (error: unknown) => void;
  readonly now?: () => number;
  /** How long a step is retried while the database is busy or unreachable, in milliseconds. Default 10,000. */
  readonly retryMs?: number;
}

const RETRY_MS = 10_000;
/** Interval at which settled jobs are added to the usage roll-ups and the fee account, in milliseconds. */
const FOLD_MS = 1000;
/** Maximum recalls of leased money per step. The second recall is for leases that were taken during the first. */
const MAX_RECALLS = 2;

/** Opens the ledger, releases the reservations of dead coordinators, and starts its timers. Callers must close the ledger. */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const ledger = new SqlLedger(options);
  await ledger.begin();
  return ledger;
}

class SqlLedger implements Ledger {
  readonly #database: Database;
  readonly #rules: LedgerRules;
  readonly #onError: (error: unknown) => void;
  readonly #now: () => number;
  readonly #retryMs: number;
  readonly #batches: GroupCommit<Step, StepOutcome>;
  /** Same object as `#batches`, unless {@link LedgerOptions.separateReservations} applies. */
  readonly #reservations: GroupCommit<Step, StepOutcome>;
  readonly #repository = new LedgerRepository();
  readonly #leases: CreditLeases | null;
  #heartbeat: RepeatedTask | null = null;
  #folding: RepeatedTask | null = null;

  constructor({
    database,
    providerSharePercent,
    ownMachinesFree,
    maturityDays = 0,
    separateReservations = false,
    leases,
    onError,
    now = Date.now,
    retryMs = RETRY_MS,
  }: LedgerOptions) {
    if (!Number.isInteger(providerSharePercent) || providerSharePercent < 0 || providerSharePercent > 100) {
      throw new RangeError("the provider's share must be a whole percentage from 0 to 100");
    }
    if (!Number.isInteger(maturityDays) || maturityDays < 0 || maturityDays > MAX_MATURITY_DAYS) {
      throw new RangeError(`earnings must mature after 0 to ${MAX_MATURITY_DAYS} whole days`);
    }
    this.#database = database;
    this.#rules = { providerSharePercent, ownMachinesFree, maturityDays, coordinatorId: randomUUID() };
    this.#onError = onError;
    this.#now = now;
    this.#retryMs = retryMs;
    const newGroupCommit = (): GroupCommit<Step, StepOutcome> =>
      new GroupCommit({
        run: (steps) => this.#run(steps),
        flush: () => syncToDisk(database),
        // A crash ends the jobs too, and the next start releases surviving reservations. A job's nonce is flushed with its settlement.
        mayBeLost: ({ type }) => type === 'reserve' || type === 'take_nonce' || type === 'release',
        isUrgent: ({ type }) => type === 'reserve' || type === 'take_nonce',
        isBlocking: dialectOf(database) === 'sqlite',
      });
    this.#leases =
      leases === undefined
        ? null
        : new CreditLeases({
            policy: leases,
            database,
            holder: this.#rules.coordinatorId,
            transact: (work) => this.#transact(work),
            onError,
          });
    this.#batches = newGroupCommit();
    this.#reservations = separateReservations && dialectOf(database) === 'postgres' ? newGroupCommit() : this.#batches;
  }

  async begin(): Promise<void> {
    await this.#renewHeartbeat();
    this.#heartbeat = new RepeatedTask(HOLDER_HEARTBEAT_MS, () => this.#renewHeartbeat(), this.#onError);
    this.#folding = new RepeatedTask(FOLD_MS, () => this.#fold(), this.#onError);
  }

  async reserve(reservation: Reservation): Promise<ReserveOutcome> {
    checkStep({ type: 'reserve', reservation });
    // Throws if the maximum cost is too large, before the nonce is taken.
    const requested = jobReservation(reservation, this.#rules.coordinatorId);
    // Limits and budgets of a key count the reservations of all coordinators, which only database rows show.
    const { keySpendLimit, keyBudget = null } = reservation;
    if (this.#leases !== null && keySpendLimit === null && keyBudget === null) {
      const earlier = this.#leases.job(reservation.jobId);
      if (earlier !== undefined && earlier.reservation.accountId !== reservation.accountId)
        throw new LedgerError('job_taken', 'the job id was used before');
      const reserved = earlier?.reservation ?? requested;
      if (earlier !== undefined || this.#leases.reserve(reserved)) {
        if (!(await this.#takeLeasedNonce(this.#leases, reservation, earlier !== undefined))) return { kind: 'replayed' };
        return { kind: 'reserved', amount: reserved.maxCost };
      }
    }
    return this.#withRecalls(
      reservation.accountId,
      () => this.#submit({ type: 'reserve', reservation }),
      (outcome) => (outcome.kind === 'insufficient_balance' ? outcome.needed - outcome.available : 0),
    );
  }

  takeNonce(nonce: SealedNonce): Promise<boolean> {
    return this.#submit({ type: 'take_nonce', nonce });
  }

  async settle(settlement: Settlement): Promise<SettleOutcome> {
    const leased = this.#leases?.job(settlement.jobId);
    if (leased === undefined) return this.#submit({ type: 'settle', settlement });
    try {
      const outcome = await this.#submit({ type: 'settle', settlement, leased });
      const { isLeaseClosing, reservation } = leased;
      this.#leases?.end(settlement.jobId, 'cost' in outcome ? (isLeaseClosing ? reservation.maxCost : outcome.cost) : 0);
      return outcome;
    } catch (error) {
      this.#leases?.closeLeaseOf(settlement.jobId);
      throw error;
    }
  }

  async release(jobId: JobId, at: number): Promise<boolean> {
    if (this.#leases?.job(jobId) === undefined) return this.#submit({ type: 'release', jobId, at });
    this.#leases.end(jobId, 0);
    return true;
  }

  deposit(deposit: Deposit): Promise<DepositOutcome> {
    return this.#submit({ type: 'deposit', deposit });
  }

  requestWithdrawal(request: WithdrawalRequest): Promise<WithdrawalOutcome> {
    return this.#withRecalls(
      request.accountId,
      () => this.#submit({ type: 'request_withdrawal', request }),
      (outcome) => (outcome.kind === 'insufficient' ? request.amount - outcome.withdrawable : 0),
    );
  }

  endWithdrawal(id: string, end: WithdrawalEnd, at: number): Promise<EndWithdrawalOutcome> {
    return this.#submit({ type: 'end_withdrawal', id, end, at });
  }

  async balance(accountId: string): Promise<Balance> {
    const row = await this.#database.selectFrom('balances').selectAll().where('account', '=', accountId).executeTakeFirst();
    if (row === undefined) return { balance: microUsd(0), reserved: microUsd(0), withdrawable: microUsd(0) };
    const stored = balanceFromRow(row);
    // Read after the balance. Earnings posted in between can then only lower the withdrawable amount.
    const pending = sumOf(await this.#pendingDays(accountId));
    const reserved = microUsd(Math.max(0, stored.reserved - (await this.#unusedLeases(accountId))));
    return { balance: stored.balance, reserved, withdrawable: withdrawableOf({ ...stored, reserved }, pending) };
  }

  async pendingEarnings(accountId: string): Promise<PendingEarnings> {
    const row = await this.#database.selectFrom('balances').select('earned').where('account', '=', accountId).executeTakeFirst();
    const days = await this.#pendingDays(accountId);
    // Earnings are spent oldest first, so the newest ones are still present.
    let left = row?.earned ?? 0;
    const maturing: { at: number; amount: MicroUsd }[] = [];
    for (const { day, amount } of days.reverse()) {
      const present = Math.min(amount, left);
      if (present > 0) maturing.push({ at: maturesAt(day, this.#rules.maturityDays), amount: microUsd(present) });
      left -= present;
    }
    return { total: microUsd(sumOf(maturing)), maturing: maturing.reverse() };
  }

  async linkProvider(providerId: string, accountId: string, at: number): Promise<void> {
    checkAccount(accountId);
    await this.#transact((transaction) => linkProvider(transaction, { providerId, accountId, at, replaces: 'any_owner' }));
  }

  async sweep(liveJobs: ReadonlySet<JobId>, reservedBefore: number): Promise<number> {
    const stored = await ownReservedJobs(this.#database, this.#rules.coordinatorId, reservedBefore);
    const own = [...stored, ...(this.#leases?.jobsBefore(reservedBefore) ?? [])];
    await this.#endExpiredLeases();
    return (await this.#release(own.filter((id) => !liveJobs.has(id as JobId)))) + (await this.#releaseAbandoned());
  }

  async close(): Promise<void> {
    await Promise.all([this.#heartbeat?.stop(), this.#folding?.stop()]);
    await Promise.all([this.#batches.close(), this.#reservations.close()]);
    await this.#leases?.close().catch(this.#onError);
    await foldJobs(this.#database, 'skip').catch(this.#onError);
    await removeHolder(this.#database, this.#rules.coordinatorId).catch(this.#onError);
  }

  /**
   * Takes the nonce of a job that was reserved from a lease. Returns false for a replay, and then undoes the reservation.
   *
   * A job that was reserved before (`isRepeated`) may be running, and keeps its reservation.
   */
  async #takeLeasedNonce(leases: CreditLeases, { jobId, nonce }: Reservation, isRepeated: boolean): Promise<boolean> {
    if (nonce === undefined) return true;
    let isTaken = false;
    try {
      isTaken = await this.takeNonce(nonce);
    } finally {
      if (!isTaken && !isRepeated) leases.end(jobId, 0);
    }
    return isTaken;
  }

  /** Repeats a step after leases of the account have returned the missing amount. `missingOf` returns 0 for a step that succeeded. */
  async #withRecalls<Outcome>(account: string, attempt: () => Promise<Outcome>, missingOf: (outcome: Outcome) => number): Promise<Outcome> {
    let outcome = await attempt();
    if (this.#leases === null) return outcome;
    for (let recalls = 0; recalls < MAX_RECALLS; recalls++) {
      const missing = missingOf(outcome);
      if (missing <= 0 || !(await this.#leases.recall(account, missing))) break;
      outcome = await attempt();
    }
    return outcome;
  }

  /** Amount in leases of an account that no job uses. For other coordinators, the use at their last renewal counts. */
  async #unusedLeases(accountId: string): Promise<number> {
    const rows = await this.#database
      .selectFrom('credit_leases')
      .select(['id', 'amount', 'in_use'])
      .where('account', '=', accountId)
      .execute();
    return rows.reduce((sum, { id, amount, in_use }) => sum + Math.max(0, amount - (this.#leases?.used(id) ?? in_use)), 0);
  }

  /** Earnings that have not matured, earliest day first, one row per day. */
  async #pendingDays(accountId: string): Promise<{ readonly day: number; readonly amount: number }[]> {
    const { maturityDays } = this.#rules;
    if (maturityDays === 0) return [];
    return this.#database
      .selectFrom('pending_earnings')
      .select(['day', 'amount'])
      .where('account', '=', accountId)
      .where('day', '>=', firstPendingDay(this.#now(), maturityDays))
      .orderBy('day')
      .execute();
  }

  async #submit<S extends Step>(step: S): Promise<StepOutcomes[S['type']]> {
    checkStep(step);
    const batches = step.type === 'reserve' || step.type === 'take_nonce' ? this.#reservations : this.#batches;
    // `applyStep` returns the outcome of the step's own type; `GroupCommit` only knows the union.
    return (await batches.submit(step)) as StepOutcomes[S['type']];
  }

  async #run(steps: readonly Step[]): Promise<readonly StepResult<StepOutcome>[]> {
    const keys = rowKeysOf(steps);
    return this.#transact(async (transaction) => {
      deferSync(transaction);
      const draft = new LedgerDraft(await this.#repository.load(transaction, keys));
      const results = steps.map((step): StepResult<StepOutcome> => {
        try {
          return { ok: applyStep(draft, step, this.#rules) };
        } catch (error) {
          return { error };
        }
      });
      await this.#repository.store(transaction, draft.changes());
      return results;
    });
  }

  /** Runs a transaction, and retries transient errors for up to `retryMs`. */
  async #transact<T>(work: (transaction: Database) => Promise<T>): Promise<T> {
    try {
      return await withRetries(() => this.#database.transaction().execute(work), Date.now() + this.#retryMs);
    } catch (error) {
      if (isTransient(error)) throw new LedgerError('unavailable', 'the database did not accept the step in time', { cause: error });
      throw error;
    }
  }

  async #renewHeartbeat(): Promise<void> {
    const now = this.#now();
    await withRetries(async () => {
      await recordHolder(this.#database, this.#rules.coordinatorId, now);
      await advanceWindows(this.#database, Math.floor(now / HOUR_MS));
    }, Date.now() + this.#retryMs);
    await this.#releaseAbandoned();
    await this.#endExpiredLeases();
  }

  /** Adds settled jobs to the roll-ups and the fee account. */
  async #fold(): Promise<void> {
    await foldJobs(this.#database, 'skip');
    if (this.#leases !== null) await this.#endExpiredLeases();
  }

  async #endExpiredLeases(): Promise<void> {
    const graceMs = leaseGraceMs(this.#database, this.#rules.coordinatorId);
    for (const { id, account } of await expiredLeases(this.#database, graceMs))
      await this.#transact((transaction) => endLease(transaction, account, id, { onlyIfExpired: true }));
  }

  async #releaseAbandoned(): Promise<number> {
    return this.#release(await abandonedJobs(this.#database, this.#rules.coordinatorId));
  }

  async #release(jobIds: readonly string[]): Promise<number> {
    const at = this.#now();
    const released = await Promise.all(jobIds.map((id) => this.release(id as JobId, at)));
    return released.filter((one) => one).length;
  }
}

function sumOf(parts: readonly { readonly amount: number }[]): number {
  return parts.reduce((sum, { amount }) => sum + amount, 0);
}
