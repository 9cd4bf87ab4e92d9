/**
 * The working copy of a batch: steps read the ground through it, change it one after the other, and it says what changed.
 * A step first works out everything that can fail and then changes the draft, so a failed step leaves no trace in it.
 */

import { addActivity, DAY_MS, HOUR_MS, MINUTE_MS, noActivity, QUARTER_MS } from '../../database/ledger/activity.js';
import type { Changes } from '../../database/ledger/ledger-changes.js';
import type { LockedRows } from '../../database/ledger/locked-rows.js';
import type { AccountHour, MinuteCounts } from '../../database/ledger/totals.js';
import type { Activity, BalanceRow, JobRow, PostingRow } from '../../database/tables/ledger.js';
import type { Tables } from '../../database/tables.js';
import { LedgerError } from './ledger-error.js';

export type Posting = Pick<PostingRow, 'account' | 'amount' | 'earned'>;
type KeyRow = Tables['key_spend'];
type WithdrawalRow = Tables['withdrawals'];

export class LedgerDraft {
  readonly #ground: LockedRows;
  readonly #jobs = new Map<string, JobRow>();
  readonly #balances = new Map<string, BalanceRow>();
  readonly #keys = new Map<string, KeyRow>();
  readonly #deposits = new Map<string, Tables['deposits']>();
  readonly #withdrawals = new Map<string, WithdrawalRow>();
  readonly #postings: Omit<PostingRow, 'seq'>[] = [];
  readonly #minutes = new Map<number, MinuteCounts>();
  readonly #hours = new Map<string, AccountHour>();
  readonly #quarters = new Map<string, Tables['machine_quarters']>();
  readonly #pending = new Map<string, Tables['pending_earnings']>();
  readonly #payers = new Map<string, Tables['payer_earnings']>();

  constructor(ground: LockedRows) {
    this.#ground = ground;
  }

  job(id: string): Readonly<JobRow> | undefined {
    return this.#jobs.get(id) ?? this.#ground.jobs.get(id);
  }

  balance(account: string): Readonly<BalanceRow> {
    return this.#balances.get(account) ?? this.#ground.balances.get(account) ?? { account, balance: 0, reserved: 0, earned: 0 };
  }

  key(id: string): Readonly<KeyRow> {
    return this.#keys.get(id) ?? this.#ground.keys.get(id) ?? { api_key_id: id, spent: 0, held: 0, spent_pruned: 0 };
  }

  /** The account that a provider earns for. */
  earner(providerId: string): string {
    const account = this.#ground.owners.get(providerId);
    if (account === undefined) throw new Error('the provider of a settlement was not loaded');
    return account;
  }

  hasDeposit(eventId: string): boolean {
    return this.#deposits.has(eventId) || this.#ground.deposits.has(eventId);
  }

  withdrawal(id: string): Readonly<WithdrawalRow> | undefined {
    return this.#withdrawals.get(id) ?? this.#ground.withdrawals.get(id);
  }

  /** Earnings of an account per day, old days included. Only of accounts whose pending earnings were loaded. */
  pending(account: string): readonly Readonly<Tables['pending_earnings']>[] {
    return [...this.#ground.pending, ...this.#pending.values()].filter((row) => row.account === account);
  }

  putJob(row: JobRow): void {
    this.#jobs.set(row.job_id, row);
  }

  putDeposit(row: Tables['deposits']): void {
    this.#deposits.set(row.event_id, row);
  }

  putWithdrawal(row: WithdrawalRow): void {
    this.#withdrawals.set(row.id, row);
  }

  /** Changes what a job of an account and a key holds. */
  hold(account: string, keyId: string, amount: number): void {
    const balance = this.balance(account);
    this.#balances.set(account, { ...balance, reserved: balance.reserved + amount });
    const key = this.key(keyId);
    this.#keys.set(keyId, { ...key, held: key.held + amount });
  }

  spend(keyId: string, amount: number): void {
    const key = this.key(keyId);
    this.#keys.set(keyId, { ...key, spent: key.spent + amount });
  }

  /**
   * Posts one event. Throws, changing nothing, when the postings do not sum to zero or a balance would leave the exact
   * integers; postings of nothing are left out.
   */
  post(event: string, at: number, postings: readonly Posting[]): void {
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
      this.#balances.set(account, { ...balance, balance: balance.balance + amount, earned: balance.earned + earned });
      this.#postings.push({ event, account, amount, earned, at });
    }
  }

  /** Counts activity of an account in the hour of `at`. */
  count(account: string, at: number, activity: Readonly<Partial<Activity>>): void {
    const hour = Math.floor(at / HOUR_MS);
    const key = `${hour} ${account}`;
    let row = this.#hours.get(key);
    if (row === undefined) {
      row = { hour, account, ...noActivity() };
      this.#hours.set(key, row);
    }
    addActivity(row, { ...noActivity(), ...activity });
  }

  /** Counts a job of a machine, for the account that it earned for. */
  countMachine(
    job: Pick<Tables['machine_quarters'], 'provider_id' | 'model' | 'earner' | 'prompt_tokens' | 'completion_tokens' | 'images' | 'earned'>,
    at: number,
  ): void {
    const quarter = Math.floor(at / QUARTER_MS);
    const key = JSON.stringify([quarter, job.provider_id, job.model, job.earner]);
    const row = this.#quarters.get(key);
    if (row === undefined) {
      this.#quarters.set(key, { ...job, quarter, jobs: 1 });
      return;
    }
    row.jobs++;
    row.prompt_tokens += job.prompt_tokens;
    row.completion_tokens += job.completion_tokens;
    row.images += job.images;
    row.earned += job.earned;
  }

  /** Adds earnings that one account got from another, on the day of `at`. `ofDeposits`: the part that was paid from deposited money. */
  earn(earner: string, payer: string, { earned, ofDeposits }: { readonly earned: number; readonly ofDeposits: number }, at: number): void {
    const day = Math.floor(at / DAY_MS);
    const pendingKey = `${day} ${earner}`;
    const pending = this.#pending.get(pendingKey) ?? { account: earner, day, amount: 0 };
    this.#pending.set(pendingKey, { ...pending, amount: pending.amount + earned });
    const payerKey = JSON.stringify([day, earner, payer]);
    const paid = this.#payers.get(payerKey) ?? { earner, payer, day, earned: 0, of_deposits: 0 };
    this.#payers.set(payerKey, { ...paid, earned: paid.earned + earned, of_deposits: paid.of_deposits + ofDeposits });
  }

  countMinute(at: number, promptTokens: number, completionTokens: number): void {
    const minute = Math.floor(at / MINUTE_MS);
    let row = this.#minutes.get(minute);
    if (row === undefined) {
      row = { minute, requests: 0, prompt_tokens: 0, completion_tokens: 0 };
      this.#minutes.set(minute, row);
    }
    row.requests++;
    row.prompt_tokens += promptTokens;
    row.completion_tokens += completionTokens;
  }

  changes(): Changes {
    const [changedJobs, newJobs] = split(this.#jobs, this.#ground.jobs);
    const [balances, addedBalances] = split(this.#balances, this.#ground.balances);
    const [keys, addedKeys] = split(this.#keys, this.#ground.keys);
    const [changedWithdrawals, newWithdrawals] = split(this.#withdrawals, this.#ground.withdrawals);
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
      pending: [...this.#pending.values()],
      payers: [...this.#payers.values()],
    };
  }
}

/** Rows that the ground had, and rows that it had not. */
function split<Row>(rows: ReadonlyMap<string, Row>, ground: ReadonlyMap<string, unknown>): [Row[], Row[]] {
  const known: Row[] = [];
  const fresh: Row[] = [];
  for (const [id, row] of rows) (ground.has(id) ? known : fresh).push(row);
  return [known, fresh];
}
