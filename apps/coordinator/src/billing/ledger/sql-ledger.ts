/**
 * The ledger on our database. Steps of all jobs are gathered into transactions (group commit); nothing that a decision rests
 * on is remembered between two of them, so several coordinators may share one PostgreSQL. A heartbeat tells the others that
 * this one lives; the holds of one that does not are released.
 */
import { randomUUID } from 'node:crypto';
import type { JobId } from '@inference/protocol';
import { deferSync, syncToDisk } from '../../database/connection/deferred-sync.js';
import { dialectOf } from '../../database/connection/dialect.js';
import { isTransient, withRetries } from '../../database/connection/transaction-retry.js';
import { HOUR_MS, MAX_MATURITY_DAYS } from '../../database/ledger/activity.js';
import { changesWriter } from '../../database/ledger/ledger-changes.js';
import { linkProvider } from '../../database/ledger/link-provider.js';
import { groundLoader } from '../../database/ledger/locked-rows.js';
import { abandonedJobs, ownReservedJobs, recordHolder, removeHolder } from '../../database/ledger/reservation-holders.js';
import { advanceWindows } from '../../database/ledger/totals.js';
import type { Database } from '../../database/tables.js';
import { type MicroUsd, microUsd } from '../micro-usd.js';
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
import { decide, type StepOutcome, type Terms, withdrawableOf } from './ledger-policy.js';
import { checkAccount, checkStep, needsOf, type Step } from './ledger-steps.js';
import { firstPendingDay, maturesAt } from './maturity.js';

export interface LedgerOptions {
  readonly database: Database;
  /** Whole percent of a job's cost that its provider earns, 0 to 100. */
  readonly providerSharePercent: number;
  readonly ownMachinesFree: boolean;
  /** Whole days after which earnings may be withdrawn, 0 (at once) to {@link MAX_MATURITY_DAYS}. Default 0. */
  readonly maturityDays?: number;
  /** Hears of failed work that nobody waits for: heartbeats, the release of abandoned holds. */
  readonly onError: (error: unknown) => void;
  readonly now?: () => number;
  /** Longest that a step is tried again while the database does not take it, in milliseconds. */
  readonly stallMs?: number;
}

const PATIENCE_MS = 10_000;
const HEARTBEAT_MS = 15_000;
/** A coordinator that was not seen for this long is gone, in milliseconds. Clocks may differ by most of it. */
const GONE_MS = 120_000;

/** Opens the ledger on an open database, and releases what coordinators that are gone still hold. Callers close it. */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const ledger = new SqlLedger(options);
  await ledger.begin();
  return ledger;
}

class SqlLedger implements Ledger {
  readonly #database: Database;
  readonly #terms: Terms;
  readonly #onError: (error: unknown) => void;
  readonly #now: () => number;
  readonly #stallMs: number;
  readonly #steps: GroupCommit<Step, StepOutcome>;
  readonly #loadGround = groundLoader();
  readonly #writeChanges = changesWriter();
  #heart: NodeJS.Timeout | null = null;
  #beating: Promise<void> | null = null;

  constructor({
    database,
    providerSharePercent,
    ownMachinesFree,
    maturityDays = 0,
    onError,
    now = Date.now,
    stallMs = PATIENCE_MS,
  }: LedgerOptions) {
    if (!Number.isInteger(providerSharePercent) || providerSharePercent < 0 || providerSharePercent > 100) {
      throw new RangeError("the provider's share must be a whole percentage from 0 to 100");
    }
    if (!Number.isInteger(maturityDays) || maturityDays < 0 || maturityDays > MAX_MATURITY_DAYS) {
      throw new RangeError(`earnings must mature after 0 to ${MAX_MATURITY_DAYS} whole days`);
    }
    this.#database = database;
    this.#terms = { providerSharePercent, ownMachinesFree, maturityDays, holder: randomUUID() };
    this.#onError = onError;
    this.#now = now;
    this.#stallMs = stallMs;
    this.#steps = new GroupCommit({
      run: (steps) => this.#run(steps),
      flush: () => syncToDisk(database),
      // A hold guards a job that runs in this process, and goes with it; one that comes back is released at the next start.
      mayBeLost: ({ type }) => type === 'reserve' || type === 'release',
      isUrgent: ({ type }) => type === 'reserve',
      blocking: dialectOf(database) === 'sqlite',
    });
  }

  async begin(): Promise<void> {
    await this.#beat();
    this.#heart = setInterval(() => {
      this.#beating ??= this.#beat()
        .catch(this.#onError)
        .finally(() => {
          this.#beating = null;
        });
    }, HEARTBEAT_MS);
    this.#heart.unref();
  }

  // Every outcome below belongs to the type of its step.

  async reserve(reservation: Reservation): Promise<ReserveOutcome> {
    return (await this.#submit({ type: 'reserve', reservation })) as ReserveOutcome;
  }

  async settle(settlement: Settlement): Promise<SettleOutcome> {
    return (await this.#submit({ type: 'settle', settlement })) as SettleOutcome;
  }

  async release(jobId: JobId, at: number): Promise<boolean> {
    return (await this.#submit({ type: 'release', jobId, at })) as boolean;
  }

  async deposit(deposit: Deposit): Promise<DepositOutcome> {
    return (await this.#submit({ type: 'deposit', deposit })) as DepositOutcome;
  }

  async requestWithdrawal(request: WithdrawalRequest): Promise<WithdrawalOutcome> {
    return (await this.#submit({ type: 'request_withdrawal', request })) as WithdrawalOutcome;
  }

  async endWithdrawal(id: string, end: WithdrawalEnd, at: number): Promise<EndWithdrawalOutcome> {
    return (await this.#submit({ type: 'end_withdrawal', id, end, at })) as EndWithdrawalOutcome;
  }

  async balance(accountId: string): Promise<Balance> {
    const row = await this.#database.selectFrom('balances').selectAll().where('account', '=', accountId).executeTakeFirst();
    if (row === undefined) return { balance: microUsd(0), reserved: microUsd(0), withdrawable: microUsd(0) };
    // Read after the balance: earnings that come between the two are then missing from what may be withdrawn.
    const pending = sumOf(await this.#pendingDays(accountId));
    return { balance: microUsd(row.balance), reserved: microUsd(row.reserved), withdrawable: withdrawableOf(row, pending) };
  }

  async pendingEarnings(accountId: string): Promise<PendingEarnings> {
    const row = await this.#database.selectFrom('balances').select('earned').where('account', '=', accountId).executeTakeFirst();
    const days = await this.#pendingDays(accountId);
    // Of spent earnings the oldest went first.
    let left = row?.earned ?? 0;
    const maturing: { at: number; amount: MicroUsd }[] = [];
    for (const { day, amount } of days.reverse()) {
      const present = Math.min(amount, left);
      if (present > 0) maturing.push({ at: maturesAt(day, this.#terms.maturityDays), amount: microUsd(present) });
      left -= present;
    }
    return { total: microUsd(sumOf(maturing)), maturing: maturing.reverse() };
  }

  async linkProvider(providerId: string, accountId: string, at: number): Promise<void> {
    checkAccount(accountId);
    await this.#alone((transaction) => linkProvider(transaction, { providerId, accountId, at, from: 'anybody' }));
  }

  async sweep(liveJobs: ReadonlySet<JobId>, olderThan: number): Promise<number> {
    const own = await ownReservedJobs(this.#database, this.#terms.holder, olderThan);
    return (await this.#release(own.filter((id) => !liveJobs.has(id as JobId)))) + (await this.#releaseAbandoned());
  }

  async close(): Promise<void> {
    if (this.#heart !== null) clearInterval(this.#heart);
    await this.#beating;
    await this.#steps.close();
    await removeHolder(this.#database, this.#terms.holder).catch(this.#onError);
  }

  /** The earliest first. At most one row per day. */
  async #pendingDays(accountId: string): Promise<{ readonly day: number; readonly amount: number }[]> {
    const { maturityDays } = this.#terms;
    if (maturityDays === 0) return [];
    return this.#database
      .selectFrom('pending_earnings')
      .select(['day', 'amount'])
      .where('account', '=', accountId)
      .where('day', '>=', firstPendingDay(this.#now(), maturityDays))
      .orderBy('day')
      .execute();
  }

  async #submit(step: Step): Promise<StepOutcome> {
    checkStep(step);
    return this.#steps.submit(step);
  }

  async #run(steps: readonly Step[]): Promise<readonly StepResult<StepOutcome>[]> {
    const needs = needsOf(steps);
    return this.#alone(async (transaction) => {
      deferSync(transaction);
      const draft = new LedgerDraft(await this.#loadGround(transaction, needs));
      const results = steps.map((step): StepResult<StepOutcome> => {
        try {
          return { ok: decide(draft, step, this.#terms) };
        } catch (error) {
          return { error };
        }
      });
      await this.#writeChanges(transaction, draft.changes());
      return results;
    });
  }

  /** Runs one transaction, again and again while the database is busy, within this ledger's patience. */
  async #alone<T>(work: (transaction: Database) => Promise<T>): Promise<T> {
    try {
      return await withRetries(() => this.#database.transaction().execute(work), Date.now() + this.#stallMs);
    } catch (error) {
      if (isTransient(error)) throw new LedgerError('unavailable', 'the database did not take the step in time', { cause: error });
      throw error;
    }
  }

  async #beat(): Promise<void> {
    const now = this.#now();
    await withRetries(async () => {
      await recordHolder(this.#database, this.#terms.holder, now);
      await advanceWindows(this.#database, Math.floor(now / HOUR_MS));
    }, Date.now() + this.#stallMs);
    await this.#releaseAbandoned();
  }

  async #releaseAbandoned(): Promise<number> {
    return this.#release(await abandonedJobs(this.#database, this.#terms.holder, this.#now() - GONE_MS));
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
