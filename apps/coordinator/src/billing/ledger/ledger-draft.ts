/**
 * Working copy of the ledger for one batch. Steps read and change the draft one after the other; the repository then stores its
 * changes. A step computes everything that can fail before its first change, so a failed step leaves no trace.
 */
import type { JobId, ProviderId } from '@inference/protocol';
import { DAY_MS, HOUR_MS, MINUTE_MS, QUARTER_MS } from '../../database/ledger/activity.js';
import type {
  AccountActivity,
  AccountBalance,
  AccountHour,
  DepositRecord,
  EarningsDay,
  KeySpend,
  LedgerJob,
  NetworkMinute,
  PayerDay,
  Posting,
  ProviderQuarter,
  WithdrawalRecord,
} from '../../database/ledger/ledger-records.js';
import type { LedgerChanges, LockedRows } from '../../database/ledger/ledger-repository.js';
import { type MicroUsd, microUsd } from '../micro-usd.js';
import { LedgerError } from './ledger-error.js';

const ZERO = microUsd(0);

export class LedgerDraft {
  readonly #locked: LockedRows;
  readonly #jobs = new Map<JobId, LedgerJob>();
  readonly #balances = new Map<string, AccountBalance>();
  readonly #keys = new Map<string, KeySpend>();
  readonly #deposits = new Map<string, DepositRecord>();
  readonly #withdrawals = new Map<string, WithdrawalRecord>();
  readonly #postings: Posting[] = [];
  readonly #minutes = new Map<number, NetworkMinute>();
  readonly #hours = new Map<string, AccountHour>();
  readonly #quarters = new Map<string, ProviderQuarter>();
  readonly #earningsDays = new Map<string, EarningsDay>();
  readonly #payerDays = new Map<string, PayerDay>();

  constructor(locked: LockedRows) {
    this.#locked = locked;
  }

  job(id: JobId): LedgerJob | undefined {
    return this.#jobs.get(id) ?? this.#locked.jobs.get(id);
  }

  balance(account: string): AccountBalance {
    return this.#balances.get(account) ?? this.#locked.balances.get(account) ?? { account, balance: ZERO, reserved: ZERO, earned: ZERO };
  }

  key(id: string): KeySpend {
    return this.#keys.get(id) ?? this.#locked.keys.get(id) ?? { apiKeyId: id, spent: ZERO, reserved: ZERO, spentPruned: ZERO };
  }

  /** Account that a provider earns for. */
  earner(providerId: ProviderId): string {
    const account = this.#locked.owners.get(providerId);
    if (account === undefined) throw new Error('the provider of a settlement was not loaded');
    return account;
  }

  hasDeposit(eventId: string): boolean {
    return this.#deposits.has(eventId) || this.#locked.deposits.has(eventId);
  }

  withdrawal(id: string): WithdrawalRecord | undefined {
    return this.#withdrawals.get(id) ?? this.#locked.withdrawals.get(id);
  }

  /** Earnings of an account per day, matured days included. The account must be in `RowKeys.earningsDays`. */
  earningsDays(account: string): readonly EarningsDay[] {
    return [...this.#locked.earningsDays, ...this.#earningsDays.values()].filter((day) => day.account === account);
  }

  putJob(job: LedgerJob): void {
    this.#jobs.set(job.reservation.jobId, job);
  }

  putDeposit(deposit: DepositRecord): void {
    this.#deposits.set(deposit.eventId, deposit);
  }

  putWithdrawal(withdrawal: WithdrawalRecord): void {
    this.#withdrawals.set(withdrawal.id, withdrawal);
  }

  /** Adds to the reserved amount of an account and a key; a negative amount releases. */
  addReserved(account: string, apiKeyId: string, amount: number): void {
    const balance = this.balance(account);
    this.#balances.set(account, { ...balance, reserved: microUsd(balance.reserved + amount) });
    const key = this.key(apiKeyId);
    this.#keys.set(apiKeyId, { ...key, reserved: microUsd(key.reserved + amount) });
  }

  addSpent(apiKeyId: string, amount: MicroUsd): void {
    const key = this.key(apiKeyId);
    this.#keys.set(apiKeyId, { ...key, spent: microUsd(key.spent + amount) });
  }

  /**
   * Posts one event. Throws without a change if the postings do not sum to zero, or if a balance would exceed exact integers.
   * Postings of zero are omitted.
   */
  post(event: string, at: number, postings: readonly Pick<Posting, 'account' | 'amount' | 'earned'>[]): void {
    let sum = 0;
    for (const { account, amount } of postings) {
      sum += amount;
      if (!Number.isSafeInteger(this.balance(account).balance + amount))
        throw new LedgerError('invalid', 'a balance would become too large');
    }
    if (sum !== 0) throw new Error('the postings of an event must sum to zero');
    for (const { account, amount, earned } of postings) {
      if (amount === 0 && earned === 0) continue;
      const balance = this.balance(account);
      this.#balances.set(account, {
        ...balance,
        balance: microUsd(balance.balance + amount),
        earned: microUsd(balance.earned + earned),
      });
      this.#postings.push({ event, account, amount, earned, at });
    }
  }

  /** Counts activity of an account in the hour of `at`. */
  countActivity(account: string, at: number, activity: Readonly<Partial<AccountActivity>>): void {
    const hour = Math.floor(at / HOUR_MS);
    const key = `${hour} ${account}`;
    let sums = this.#hours.get(key);
    if (sums === undefined) {
      sums = {
        ...{ hour, account, requests: 0, promptTokens: 0, completionTokens: 0 },
        ...{ images: 0, spent: 0, servedJobs: 0, servedTokens: 0, earned: 0 },
      };
      this.#hours.set(key, sums);
    }
    sums.requests += activity.requests ?? 0;
    sums.promptTokens += activity.promptTokens ?? 0;
    sums.completionTokens += activity.completionTokens ?? 0;
    sums.images += activity.images ?? 0;
    sums.spent += activity.spent ?? 0;
    sums.servedJobs += activity.servedJobs ?? 0;
    sums.servedTokens += activity.servedTokens ?? 0;
    sums.earned += activity.earned ?? 0;
  }

  /** Counts a job of a provider and its earner in the quarter of an hour of `at`. */
  countProviderJob(job: Omit<ProviderQuarter, 'quarter' | 'jobs'>, at: number): void {
    const quarter = Math.floor(at / QUARTER_MS);
    const key = JSON.stringify([quarter, job.providerId, job.model, job.earner]);
    const sums = this.#quarters.get(key);
    if (sums === undefined) {
      this.#quarters.set(key, { ...job, quarter, jobs: 1 });
      return;
    }
    sums.jobs++;
    sums.promptTokens += job.promptTokens;
    sums.completionTokens += job.completionTokens;
    sums.images += job.images;
    sums.earned += job.earned;
  }

  /** Counts a job of the network in the minute of `at`. */
  countMinute(at: number, promptTokens: number, completionTokens: number): void {
    const minute = Math.floor(at / MINUTE_MS);
    let sums = this.#minutes.get(minute);
    if (sums === undefined) {
      sums = { minute, requests: 0, promptTokens: 0, completionTokens: 0 };
      this.#minutes.set(minute, sums);
    }
    sums.requests++;
    sums.promptTokens += promptTokens;
    sums.completionTokens += completionTokens;
  }

  /** Adds earnings from one payer on the day of `at`. `ofDeposits`: part taken from deposited money. */
  addEarnings(
    earner: string,
    payer: string,
    { earned, ofDeposits }: { readonly earned: number; readonly ofDeposits: number },
    at: number,
  ): void {
    const day = Math.floor(at / DAY_MS);
    const earningsKey = `${day} ${earner}`;
    const earnings = this.#earningsDays.get(earningsKey) ?? { account: earner, day, amount: 0 };
    this.#earningsDays.set(earningsKey, { ...earnings, amount: earnings.amount + earned });
    const payerKey = JSON.stringify([day, earner, payer]);
    const paid = this.#payerDays.get(payerKey) ?? { earner, payer, day, earned: 0, ofDeposits: 0 };
    this.#payerDays.set(payerKey, { ...paid, earned: paid.earned + earned, ofDeposits: paid.ofDeposits + ofDeposits });
  }

  changes(): LedgerChanges {
    const [changedJobs, newJobs] = split(this.#jobs, this.#locked.jobs);
    const [balances, addedBalances] = split(this.#balances, this.#locked.balances);
    const [keys, addedKeys] = split(this.#keys, this.#locked.keys);
    const [changedWithdrawals, newWithdrawals] = split(this.#withdrawals, this.#locked.withdrawals);
    return {
      newJobs,
      changedJobs,
      newDeposits: [...this.#deposits.values()],
      newWithdrawals,
      changedWithdrawals,
      postings: this.#postings,
      balances,
      keys,
      addedBalances,
      addedKeys,
      minutes: [...this.#minutes.values()],
      hours: [...this.#hours.values()],
      quarters: [...this.#quarters.values()],
      earningsDays: [...this.#earningsDays.values()],
      payerDays: [...this.#payerDays.values()],
    };
  }
}

/** Separates locked records from new ones. */
function split<Id, Entry>(records: ReadonlyMap<Id, Entry>, locked: ReadonlyMap<Id, unknown>): [Entry[], Entry[]] {
  const known: Entry[] = [];
  const added: Entry[] = [];
  for (const [id, record] of records) (locked.has(id) ? known : added).push(record);
  return [known, added];
}
