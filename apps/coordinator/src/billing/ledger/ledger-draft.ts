/**
 * `LedgerDraft` collects the changes of a batch of ledger steps (reserve, settle, deposit, …) over the rows that the batch has locked.
 *
 * `LedgerRepository` loads the rows, `applyStep` reads and changes the draft, and the repository stores `changes()`.
 */
import type { JobId, ProviderId } from '@inference/protocol';
import { FEES } from '../../database/ledger/fold-jobs.js';
import { addSpending, dayOf } from '../../database/ledger/key-budget.js';
import type {
  AccountBalance,
  DepositRecord,
  EarningsDay,
  KeySpend,
  LeaseAmount,
  LedgerJob,
  PayerDay,
  Posting,
  WithdrawalRecord,
} from '../../database/ledger/ledger-records.js';
import type { LedgerChanges, LockedRows } from '../../database/ledger/ledger-repository.js';
import type { SealedNonce } from '../../database/sealed-nonce-repository.js';
import { DAY_MS } from '../../time-units.js';
import { type MicroUsd, microUsd } from '../micro-usd.js';
import { LedgerError } from './ledger-error.js';

const ZERO = microUsd(0);
const UNUSED_KEY = {
  spent: ZERO,
  reserved: ZERO,
  spentPruned: ZERO,
  countedDay: 0,
  daySpent: ZERO,
  weekSpent: ZERO,
  monthSpent: ZERO,
} as const satisfies Omit<KeySpend, 'apiKeyId'>;

export class LedgerDraft {
  readonly #locked: LockedRows;
  readonly #jobs = new Map<JobId, LedgerJob>();
  readonly #balances = new Map<string, Mutable<AccountBalance>>();
  readonly #keys = new Map<string, Mutable<KeySpend>>();
  readonly #leases = new Map<string, Mutable<LeaseAmount>>();
  readonly #deposits = new Map<string, DepositRecord>();
  readonly #withdrawals = new Map<string, WithdrawalRecord>();
  readonly #unusedNonces: string[] = [];
  readonly #postings: Posting[] = [];
  // Nested maps and short arrays, because building a string key costs more than a lookup.
  readonly #earningsDays = new Map<string, Mutable<EarningsDay>[]>();
  readonly #payerDays = new Map<string, Map<string, Mutable<PayerDay>[]>>();

  constructor(locked: LockedRows) {
    this.#locked = locked;
  }

  /** False: another job took the nonce of the sealed request first. */
  hasNonce({ digest, jobId }: SealedNonce): boolean {
    return this.#locked.nonces.get(digest) === jobId;
  }

  /** In this and the following methods, changes of earlier steps are visible. */
  job(id: JobId): LedgerJob | undefined {
    return this.#jobs.get(id) ?? this.#locked.jobs.get(id);
  }

  balance(account: string): AccountBalance {
    return this.#balances.get(account) ?? this.#locked.balances.get(account) ?? { account, balance: ZERO, reserved: ZERO, earned: ZERO };
  }

  key(id: string): KeySpend {
    return this.#keys.get(id) ?? this.#locked.keys.get(id) ?? { apiKeyId: id, ...UNUSED_KEY };
  }

  lease(id: string): LeaseAmount | undefined {
    return this.#leases.get(id) ?? this.#locked.leases.get(id);
  }

  /** Account that receives a provider's earnings. */
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

  /** Earnings of an account per day, including matured days. The account must be in `RowKeys.earningsDays`. */
  earningsDays(account: string): readonly EarningsDay[] {
    return [...this.#locked.earningsDays.filter((day) => day.account === account), ...(this.#earningsDays.get(account) ?? [])];
  }

  /** Frees the nonce of a refused reservation, so that the request may be sent again. */
  releaseNonce({ digest }: SealedNonce): void {
    this.#unusedNonces.push(digest);
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

  /** Adds to the reserved amount of an account and a key. A negative amount releases. */
  addReserved(account: string, apiKeyId: string, amount: number): void {
    const balance = this.#changedBalance(account);
    balance.reserved = microUsd(balance.reserved + amount);
    const key = this.#changedKey(apiKeyId);
    key.reserved = microUsd(key.reserved + amount);
  }

  /** Removes an amount from a lease, and from the account's reserved amount. */
  takeFromLease(account: string, lease: LeaseAmount, amount: number): void {
    const changed = entryOf(this.#leases, lease.id, () => ({ ...lease }));
    changed.amount -= amount;
    const balance = this.#changedBalance(account);
    balance.reserved = microUsd(balance.reserved - amount);
  }

  /** Adds a cost to the spending of a key, in total and for the calendar periods that contain `at`. */
  addSpent(apiKeyId: string, amount: MicroUsd, at: number): void {
    const key = this.#changedKey(apiKeyId);
    if (amount === 0) return;
    key.spent = microUsd(key.spent + amount);
    Object.assign(key, addSpending(key, amount, dayOf(at)));
  }

  /** Adds a double entry and changes the balances. Throws before any change if the sum is not zero or a balance is too large. */
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
      // `foldJobs` adds the fees to their balance later, so that settlements do not contend for its row.
      if (account !== FEES) {
        const balance = this.#changedBalance(account);
        balance.balance = microUsd(balance.balance + amount);
        balance.earned = microUsd(balance.earned + earned);
      }
      this.#postings.push({ event, account, amount, earned, at });
    }
  }

  /** Adds earnings from one payer to the day of `at`. `ofDeposits` is the part that the payer paid from deposited money. */
  addEarnings(
    earner: string,
    payer: string,
    { earned, ofDeposits }: { readonly earned: number; readonly ofDeposits: number },
    at: number,
  ): void {
    const day = Math.floor(at / DAY_MS);
    const days = entryOf(this.#earningsDays, earner, () => []);
    const earnings = days.find((entry) => entry.day === day);
    if (earnings === undefined) days.push({ account: earner, day, amount: earned });
    else earnings.amount += earned;
    const payers = entryOf(this.#payerDays, earner, () => new Map<string, Mutable<PayerDay>[]>());
    const paidDays = entryOf<string, Mutable<PayerDay>[]>(payers, payer, () => []);
    const paid = paidDays.find((entry) => entry.day === day);
    if (paid === undefined) {
      paidDays.push({ earner, payer, day, earned, ofDeposits });
      return;
    }
    paid.earned += earned;
    paid.ofDeposits += ofDeposits;
  }

  /** Locked rows are stored with their new values. A row that did not exist may be inserted concurrently, so its amounts are added. */
  changes(): LedgerChanges {
    const [changedJobs, newJobs] = split(this.#jobs, this.#locked.jobs);
    const [balances, addedBalances] = split(this.#balances, this.#locked.balances);
    const [keys, addedKeys] = split(this.#keys, this.#locked.keys);
    const [changedWithdrawals, newWithdrawals] = split(this.#withdrawals, this.#locked.withdrawals);
    return {
      unusedNonces: this.#unusedNonces,
      newJobs,
      changedJobs,
      newDeposits: [...this.#deposits.values()],
      newWithdrawals,
      changedWithdrawals,
      postings: this.#postings,
      balances,
      keys,
      leases: [...this.#leases.values()],
      addedBalances,
      addedKeys,
      earningsDays: [...this.#earningsDays.values()].flat(),
      payerDays: [...this.#payerDays.values()].flatMap((payers) => [...payers.values()].flat()),
    };
  }

  /** Copies the entry at its first change. */
  #changedBalance(account: string): Mutable<AccountBalance> {
    return entryOf(this.#balances, account, () => ({ ...this.balance(account) }));
  }

  #changedKey(id: string): Mutable<KeySpend> {
    return entryOf(this.#keys, id, () => ({ ...this.key(id) }));
  }
}

type Mutable<Entry> = { -readonly [Name in keyof Entry]: Entry[Name] };

function entryOf<Key, Entry>(map: Map<Key, Entry>, key: Key, create: () => Entry): Entry {
  let entry = map.get(key);
  if (entry === undefined) {
    entry = create();
    map.set(key, entry);
  }
  return entry;
}

/** Separates the records of locked rows from those that were not stored when the batch was loaded. */
function split<Id, Entry>(records: ReadonlyMap<Id, Entry>, locked: ReadonlyMap<Id, unknown>): [Entry[], Entry[]] {
  const known: Entry[] = [];
  const added: Entry[] = [];
  for (const [id, record] of records) (locked.has(id) ? known : added).push(record);
  return [known, added];
}
