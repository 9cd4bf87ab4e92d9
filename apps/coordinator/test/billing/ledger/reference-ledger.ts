/** Reference for comparison: a simple ledger in maps, one step after the other, with big integers. */
import type { Deposit, Reservation, Settlement, WithdrawalEnd, WithdrawalRequest } from '../../../src/billing/ledger/ledger.js';

interface Account {
  deposited: bigint;
  earned: bigint;
  reserved: bigint;
}
interface Payment {
  readonly earner: string;
  readonly payer: string;
  readonly at: number;
  readonly earned: bigint;
  /** Part that returns as earnings if the payer is, or becomes, the earner. */
  readonly restored: bigint;
}
interface Job {
  readonly reservation: Reservation;
  readonly amount: bigint;
  state: 'reserved' | 'settled' | 'released';
  cost: bigint;
}

const up = (value: bigint): bigint => (value + 999_999n) / 1_000_000n;
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const big = (value: number): bigint => BigInt(value);

export class ReferenceLedger {
  readonly accounts = new Map<string, Account>();
  readonly keys = new Map<string, { spent: bigint; held: bigint }>();
  readonly jobs = new Map<string, Job>();
  readonly owners = new Map<string, string>();
  readonly #deposits = new Set<string>();
  readonly #withdrawals = new Map<string, { request: WithdrawalRequest; state: string }>();
  readonly #share: bigint;
  /** Payments between accounts, in order of settlement. */
  #payments: Payment[] = [];
  readonly #maturityDays: number;
  readonly #now: number;
  fees = 0n;

  constructor(sharePercent: number, { maturityDays, now }: { readonly maturityDays: number; readonly now: number }) {
    this.#share = big(sharePercent);
    this.#maturityDays = maturityDays;
    this.#now = now;
  }

  account(id: string): Account {
    const account = this.accounts.get(id) ?? { deposited: 0n, earned: 0n, reserved: 0n };
    this.accounts.set(id, account);
    return account;
  }

  reserve(r: Reservation): string {
    const known = this.jobs.get(r.jobId);
    if (known !== undefined) return known.state === 'reserved' ? `reserved ${known.amount}` : 'job_taken';
    const amount = this.#cost(r, r.maxPromptTokens, r.maxCompletionTokens, r.images ?? 0);
    const account = this.account(r.accountId);
    if (amount > account.deposited + account.earned - account.reserved) return 'insufficient_balance';
    const key = this.#key(r.apiKeyId);
    if (r.keySpendLimit !== null && key.spent + key.held + amount > big(r.keySpendLimit)) return 'key_limit_reached';
    account.reserved += amount;
    key.held += amount;
    this.jobs.set(r.jobId, { reservation: r, amount, state: 'reserved', cost: 0n });
    return `reserved ${amount}`;
  }

  settle(s: Settlement): string {
    const job = this.jobs.get(s.jobId);
    if (job === undefined) return 'unknown_job';
    if (job.state === 'settled') return `already_settled ${job.cost}`;
    if (job.state === 'released') return 'released_before';
    const r = job.reservation;
    const tokens = [Math.min(s.promptTokens, r.maxPromptTokens), Math.min(s.completionTokens, r.maxCompletionTokens)] as const;
    const cost = min(job.amount, this.#cost(r, ...tokens, Math.min(s.images ?? 0, r.images ?? 0), s.cachedTokens));
    this.#unhold(job);
    const payer = this.account(r.accountId);
    const ofDeposit = min(cost, payer.deposited);
    const ofEarnings = cost - ofDeposit;
    payer.deposited -= ofDeposit;
    payer.earned -= ofEarnings;
    const earned = (cost * this.#share) / 100n;
    const earner = this.owners.get(s.providerId) ?? `provider:${s.providerId}`;
    const payment = { earner, payer: r.accountId, at: s.at, earned, restored: min(earned, ofEarnings) };
    if (earner === r.accountId) this.#restore(payment);
    else {
      this.account(earner).earned += earned;
      this.#payments.push(payment);
    }
    this.fees += cost - earned;
    this.#key(r.apiKeyId).spent += cost;
    job.state = 'settled';
    job.cost = cost;
    return `settled ${cost}`;
  }

  release(jobId: string): string {
    const job = this.jobs.get(jobId);
    if (job === undefined || job.state !== 'reserved') return 'false';
    this.#unhold(job);
    job.state = 'released';
    return 'true';
  }

  deposit(d: Deposit): string {
    if (this.#deposits.has(d.eventId)) return 'already_deposited';
    this.#deposits.add(d.eventId);
    this.account(d.accountId).deposited += big(d.amount);
    return 'deposited';
  }

  requestWithdrawal(request: WithdrawalRequest): string {
    if (this.#withdrawals.has(request.id)) return 'requested';
    const account = this.account(request.accountId);
    const withdrawable = this.withdrawable(request.accountId);
    if (big(request.amount) > withdrawable) return `insufficient ${withdrawable}`;
    account.earned -= big(request.amount);
    this.#withdrawals.set(request.id, { request, state: 'requested' });
    return 'requested';
  }

  endWithdrawal(id: string, end: WithdrawalEnd): string {
    const row = this.#withdrawals.get(id);
    if (row === undefined) return 'unknown_withdrawal';
    if (row.state !== 'requested') return `already_ended ${row.state}`;
    row.state = end;
    if (end === 'rejected') this.account(row.request.accountId).earned += big(row.request.amount);
    return 'ended';
  }

  link(providerId: string, accountId: string): void {
    const unclaimed = `provider:${providerId}`;
    const waiting = this.owners.has(providerId) ? [] : this.#payments.filter(({ earner }) => earner === unclaimed);
    this.#payments = this.#payments.filter((payment) => !waiting.includes(payment));
    for (const payment of waiting) {
      this.account(unclaimed).earned -= payment.earned;
      if (payment.payer === accountId) this.#restore(payment);
      else {
        this.account(accountId).earned += payment.earned;
        this.#payments.push({ ...payment, earner: accountId });
      }
    }
    this.owners.set(providerId, accountId);
  }

  /** Matured earnings that are present and not reserved. */
  withdrawable(accountId: string): bigint {
    const { deposited, earned, reserved } = this.account(accountId);
    const day = (at: number): number => Math.floor(at / 86_400_000);
    const pending = this.#payments
      .filter(({ earner, at }) => earner === accountId && day(at) + this.#maturityDays >= day(this.#now))
      .reduce((sum, payment) => sum + payment.earned, 0n);
    const free = min(earned - pending, deposited + earned - reserved);
    return free > 0n ? free : 0n;
  }

  /** The payer's own provider earned, so the money returns as the kind (deposit or earnings) that was spent. */
  #restore({ payer, earned, restored }: Payment): void {
    const account = this.account(payer);
    account.earned += restored;
    account.deposited += earned - restored;
  }

  #cost({ price }: Reservation, prompt: number, completion: number, images: number, cached = 0): bigint {
    const cachedPrompt = Math.min(cached, prompt);
    const cachedPerMillion = price.cachedPerMillion ?? price.promptPerMillion;
    return (
      up(big(prompt - cachedPrompt) * big(price.promptPerMillion) + big(cachedPrompt) * big(cachedPerMillion)) +
      up(big(completion) * big(price.completionPerMillion)) +
      big(images) * big(price.perImage)
    );
  }

  #key(id: string): { spent: bigint; held: bigint } {
    const key = this.keys.get(id) ?? { spent: 0n, held: 0n };
    this.keys.set(id, key);
    return key;
  }

  #unhold(job: Job): void {
    this.account(job.reservation.accountId).reserved -= job.amount;
    this.#key(job.reservation.apiKeyId).held -= job.amount;
  }
}
