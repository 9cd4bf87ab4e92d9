/**
 * What each step does to the draft of its batch, and what it answers. Pure: everything a decision rests on is in the draft,
 * the step and the terms.
 */
import type { BalanceRow, JobRow } from '../../database/tables/ledger.js';
import { MAX_PER_STEP, type MicroUsd, microUsd } from '../micro-usd.js';
import { costOf } from '../prices/price.js';
import type {
  Deposit,
  DepositOutcome,
  EndWithdrawalOutcome,
  Reservation,
  ReserveOutcome,
  Settlement,
  SettleOutcome,
  WithdrawalOutcome,
  WithdrawalRequest,
} from './ledger.js';
import type { LedgerDraft } from './ledger-draft.js';
import { LedgerError } from './ledger-error.js';
import type { Step } from './ledger-steps.js';
import { firstPendingDay } from './maturity.js';
import { FEES, OUTSIDE, WITHDRAWALS } from './system-accounts.js';

/** How what a job costs is shared out. */
export interface Terms {
  /** Part of the cost that the provider earns, in whole percent, rounded down; the rest is the network's fee. */
  readonly providerSharePercent: number;
  /** A job that one's own provider answers costs nothing and earns nothing. */
  readonly ownMachinesFree: boolean;
  /** Whole days after which earnings may be withdrawn; 0: at once. */
  readonly maturityDays: number;
  /** Id of this coordinator among the holders. */
  readonly holder: string;
}

export type StepOutcome = ReserveOutcome | SettleOutcome | DepositOutcome | WithdrawalOutcome | EndWithdrawalOutcome | boolean;

/** Applies a step. Throws, leaving the draft as it was, when the step cannot be. */
export function decide(draft: LedgerDraft, step: Step, terms: Terms): StepOutcome {
  switch (step.type) {
    case 'reserve':
      return reserve(draft, step.reservation, terms);
    case 'settle':
      return settle(draft, step.settlement, terms);
    case 'release':
      return release(draft, step.jobId, step.at);
    case 'deposit':
      return deposit(draft, step.deposit);
    case 'request_withdrawal':
      return requestWithdrawal(draft, step.request, terms);
    case 'end_withdrawal':
      return endWithdrawal(draft, step.id, step.end, step.at);
    default:
      return step satisfies never;
  }
}

/** What may be paid out of a balance: earnings that are there and have matured, less what deposited money does not cover of the holds. */
export function withdrawableOf(row: Readonly<BalanceRow>, pending: number): MicroUsd {
  return microUsd(Math.max(0, Math.min(row.earned - pending, row.balance - row.reserved)));
}

function reserve(draft: LedgerDraft, reservation: Reservation, terms: Terms): ReserveOutcome {
  const { jobId, accountId, apiKeyId, keySpendLimit, price } = reservation;
  const known = draft.job(jobId);
  if (known !== undefined) {
    if (known.state !== 'reserved' || known.account_id !== accountId) throw new LedgerError('job_taken', 'the job id was used before');
    return { kind: 'reserved', amount: microUsd(known.amount) };
  }
  const images = reservation.images ?? 0;
  const amount = maxOf(reservation, images);
  const balance = draft.balance(accountId);
  const available = balance.balance - balance.reserved;
  if (amount > available) return { kind: 'insufficient_balance', needed: amount, available: microUsd(Math.max(0, available)) };
  if (keySpendLimit !== null) {
    const key = draft.key(apiKeyId);
    const left = keySpendLimit - key.spent - key.held;
    if (amount > left) return { kind: 'key_limit_reached', needed: amount, left: microUsd(Math.max(0, left)) };
  }
  draft.hold(accountId, apiKeyId, amount);
  draft.putJob({
    job_id: jobId,
    account_id: accountId,
    api_key_id: apiKeyId,
    model: reservation.model,
    endpoint: reservation.endpoint,
    state: 'reserved',
    amount,
    price_id: price.id,
    prompt_per_million: price.promptPerMillion,
    completion_per_million: price.completionPerMillion,
    per_image: price.perImage,
    max_prompt_tokens: reservation.maxPromptTokens,
    max_completion_tokens: reservation.maxCompletionTokens,
    max_images: images,
    holder: terms.holder,
    reserved_at: reservation.at,
    ended_at: null,
    provider_id: null,
    earner: null,
    prompt_tokens: 0,
    completion_tokens: 0,
    hidden_tokens: 0,
    cached_tokens: 0,
    images: 0,
    cost: 0,
    earned: 0,
    fee: 0,
  });
  return { kind: 'reserved', amount };
}

function settle(draft: LedgerDraft, settlement: Settlement, terms: Terms): SettleOutcome {
  const { jobId, providerId, at } = settlement;
  const job = draft.job(jobId);
  if (job === undefined) return { kind: 'unknown_job' };
  if (job.state === 'settled') return { kind: 'already_settled', cost: microUsd(job.cost) };
  if (job.state === 'released') return { kind: 'released_before' };

  const promptTokens = Math.min(settlement.promptTokens, job.max_prompt_tokens);
  const completionTokens = Math.min(settlement.completionTokens, job.max_completion_tokens);
  const images = Math.min(settlement.images ?? 0, job.max_images);
  const owner = draft.earner(providerId);
  const free = terms.ownMachinesFree && owner === job.account_id;
  const cost = free ? microUsd(0) : microUsd(Math.min(job.amount, costOf(ratesOf(job), { promptTokens, completionTokens, images })));
  const earned = microUsd(Math.floor((cost * terms.providerSharePercent) / 100));
  const fee = microUsd(cost - earned);

  // Deposited money is spent first, so that only what was earned can ever be paid out.
  const balance = draft.balance(job.account_id);
  const ofEarnings = (amount: number): number => Math.max(0, amount - (balance.balance - balance.earned));
  const fees = { account: FEES, amount: fee, earned: 0 };
  // An own machine's share goes back as the kind of money that was spent, so the account only spends the fee.
  const own = owner === job.account_id;
  const postings = own
    ? [{ account: owner, amount: -fee, earned: -ofEarnings(fee) }, fees]
    : [{ account: job.account_id, amount: -cost, earned: -ofEarnings(cost) }, { account: owner, amount: earned, earned }, fees];
  const ofDeposits = earned - Math.min(earned, ofEarnings(cost));
  draft.post(`job:${jobId}`, at, postings);
  if (!own && earned > 0) draft.earn(owner, job.account_id, { earned, ofDeposits }, at);
  draft.hold(job.account_id, job.api_key_id, -job.amount);
  draft.spend(job.api_key_id, cost);
  draft.putJob({
    ...job,
    state: 'settled',
    ended_at: at,
    provider_id: providerId,
    earner: free ? null : owner,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    hidden_tokens: Math.min(settlement.hiddenTokens, completionTokens),
    cached_tokens: Math.min(settlement.cachedTokens, promptTokens),
    images,
    cost,
    earned,
    fee,
  });
  const used = { requests: 1, prompt_tokens: promptTokens, completion_tokens: completionTokens, images, spent: cost };
  draft.count(job.account_id, at, used);
  if (!free) {
    draft.count(owner, at, { served_jobs: 1, served_tokens: promptTokens + completionTokens, earned });
    const counts = { prompt_tokens: promptTokens, completion_tokens: completionTokens, images, earned };
    draft.countMachine({ provider_id: providerId, model: job.model, earner: owner, ...counts }, at);
  }
  draft.countMinute(at, promptTokens, completionTokens);
  return { kind: 'settled', cost, earned, fee };
}

function release(draft: LedgerDraft, jobId: string, at: number): boolean {
  const job = draft.job(jobId);
  if (job === undefined || job.state !== 'reserved') return false;
  draft.hold(job.account_id, job.api_key_id, -job.amount);
  draft.putJob({ ...job, state: 'released', ended_at: at });
  return true;
}

function deposit(draft: LedgerDraft, { eventId, accountId, amount, source, at }: Deposit): DepositOutcome {
  if (draft.hasDeposit(eventId)) return { kind: 'already_deposited' };
  draft.post(`deposit:${eventId}`, at, [
    { account: accountId, amount, earned: 0 },
    { account: OUTSIDE, amount: -amount, earned: 0 },
  ]);
  draft.putDeposit({ event_id: eventId, account_id: accountId, amount, source, at });
  return { kind: 'deposited' };
}

function requestWithdrawal(
  draft: LedgerDraft,
  { id, accountId, amount, at }: WithdrawalRequest,
  { maturityDays }: Terms,
): WithdrawalOutcome {
  const known = draft.withdrawal(id);
  if (known !== undefined) {
    if (known.account_id !== accountId || known.amount !== amount) throw new LedgerError('conflict', 'the withdrawal id was used before');
    return { kind: 'requested' };
  }
  const firstDay = firstPendingDay(at, maturityDays);
  const pending = draft.pending(accountId).reduce((sum, { day, amount: earned }) => (day >= firstDay ? sum + earned : sum), 0);
  const withdrawable = withdrawableOf(draft.balance(accountId), pending);
  if (amount > withdrawable) return { kind: 'insufficient', withdrawable };
  draft.post(`withdrawal:${id}:requested`, at, [
    { account: accountId, amount: -amount, earned: -amount },
    { account: WITHDRAWALS, amount, earned: amount },
  ]);
  draft.putWithdrawal({ id, account_id: accountId, amount, state: 'requested', requested_at: at, ended_at: null });
  return { kind: 'requested' };
}

function endWithdrawal(draft: LedgerDraft, id: string, end: 'paid' | 'rejected', at: number): EndWithdrawalOutcome {
  const row = draft.withdrawal(id);
  if (row === undefined) return { kind: 'unknown_withdrawal' };
  if (row.state !== 'requested') return { kind: 'already_ended', end: row.state };
  const { amount } = row;
  const to = end === 'paid' ? { account: OUTSIDE, amount, earned: 0 } : { account: row.account_id, amount, earned: amount };
  draft.post(`withdrawal:${id}:${end}`, at, [{ account: WITHDRAWALS, amount: -amount, earned: -amount }, to]);
  draft.putWithdrawal({ ...row, state: end, ended_at: at });
  return { kind: 'ended' };
}

/** The most a job can cost. Throws {@link LedgerError} where that is more than any step may move. */
function maxOf({ price, maxPromptTokens, maxCompletionTokens }: Reservation, images: number): MicroUsd {
  let amount: MicroUsd;
  try {
    amount = costOf(price, { promptTokens: maxPromptTokens, completionTokens: maxCompletionTokens, images });
  } catch (error) {
    throw new LedgerError('invalid', 'the job could cost more than can be counted', { cause: error });
  }
  if (amount > MAX_PER_STEP) throw new LedgerError('invalid', 'the job could cost more than any step may move');
  return amount;
}

function ratesOf(job: Readonly<JobRow>) {
  return {
    promptPerMillion: microUsd(job.prompt_per_million),
    completionPerMillion: microUsd(job.completion_per_million),
    perImage: microUsd(job.per_image),
  };
}
