/**
 * Rules of the ledger: what a reservation, settlement, deposit or withdrawal changes, and when it is refused. Without I/O.
 *
 * `applyStep` changes the draft of a batch, which the ledger then stores in one transaction.
 */
import type { JobId } from '@inference/protocol';
import { FEES } from '../../database/ledger/fold-jobs.js';
import { dayOf, nextPeriodStart, spentInPeriod } from '../../database/ledger/key-budget.js';
import type { AccountBalance, JobReservation, JobSettlement, LeaseAmount } from '../../database/ledger/ledger-records.js';
import { DAY_MS } from '../../time-units.js';
import { MAX_PER_STEP, type MicroUsd, microUsd } from '../micro-usd.js';
import { costOf } from '../prices/price.js';
import type { LeasedJob } from './credit-leases.js';
import type {
  Deposit,
  DepositOutcome,
  EndWithdrawalOutcome,
  Reservation,
  ReserveOutcome,
  Settlement,
  SettleOutcome,
  WithdrawalEnd,
  WithdrawalOutcome,
  WithdrawalRequest,
} from './ledger.js';
import type { LedgerDraft } from './ledger-draft.js';
import { LedgerError } from './ledger-error.js';
import type { Step, StepOutcome } from './ledger-steps.js';

export interface LedgerRules {
  /** Percentage of a job's cost that the provider earns, rounded down. The network keeps the rest as its fee. */
  readonly providerSharePercent: number;
  /** Whether an account's jobs on its own providers are free, and earn nothing. */
  readonly ownMachinesFree: boolean;
  /** Days until earnings can be withdrawn. */
  readonly maturityDays: number;
  /** Id of this coordinator, stored with its reservations. */
  readonly coordinatorId: string;
}

/** Applies a step. Throws without changing the draft if the step is impossible. */
export function applyStep(draft: LedgerDraft, step: Step, rules: LedgerRules): StepOutcome {
  switch (step.type) {
    case 'reserve':
      return reserve(draft, step.reservation, rules);
    case 'take_nonce':
      return draft.hasNonce(step.nonce);
    case 'settle':
      return settle(draft, step, rules);
    case 'release':
      return release(draft, step.jobId, step.at);
    case 'deposit':
      return deposit(draft, step.deposit);
    case 'request_withdrawal':
      return requestWithdrawal(draft, step.request, rules);
    case 'end_withdrawal':
      return endWithdrawal(draft, step.id, step.end, step.at);
    default:
      return step satisfies never;
  }
}

/**
 * Amount that can be withdrawn: matured earnings, at most the unreserved balance. Reserved money counts as deposits first, then as
 * pending earnings.
 */
export function withdrawableOf({ balance, reserved, earned }: AccountBalance, pendingEarnings: number): MicroUsd {
  return microUsd(Math.max(0, Math.min(earned - pendingEarnings, balance - reserved)));
}

function reserve(draft: LedgerDraft, reservation: Reservation, rules: LedgerRules): ReserveOutcome {
  const { jobId, accountId, nonce } = reservation;
  const known = draft.job(jobId);
  if (known !== undefined) {
    if (known.state !== 'reserved' || known.reservation.accountId !== accountId)
      throw new LedgerError('job_taken', 'the job id was used before');
    return { kind: 'reserved', amount: known.reservation.maxCost };
  }
  if (nonce !== undefined && !draft.hasNonce(nonce)) return { kind: 'replayed' };
  const maxCost = maxCostOf(reservation);
  const refusal = refusalOf(draft, reservation, maxCost);
  if (refusal !== null) {
    if (nonce !== undefined) draft.releaseNonce(nonce);
    return refusal;
  }
  draft.addReserved(accountId, reservation.apiKeyId, maxCost);
  draft.putJob({ state: 'reserved', reservation: jobReservation(reservation, rules.coordinatorId, maxCost) });
  return { kind: 'reserved', amount: maxCost };
}

/** Why a reservation is refused; null if the balance, the key's spend limit and its budget are sufficient. */
function refusalOf(
  draft: LedgerDraft,
  { accountId, apiKeyId, keySpendLimit, keyBudget = null, at }: Reservation,
  maxCost: MicroUsd,
): Exclude<ReserveOutcome, { readonly kind: 'reserved' }> | null {
  const balance = draft.balance(accountId);
  const available = balance.balance - balance.reserved;
  if (maxCost > available) return { kind: 'insufficient_balance', needed: maxCost, available: microUsd(Math.max(0, available)) };
  if (keySpendLimit !== null) {
    const key = draft.key(apiKeyId);
    const left = keySpendLimit - key.spent - key.reserved;
    if (maxCost > left) return { kind: 'key_limit_reached', needed: maxCost, left: microUsd(Math.max(0, left)) };
  }
  if (keyBudget !== null) {
    const key = draft.key(apiKeyId);
    const day = Math.max(dayOf(at), key.countedDay);
    const spent = spentInPeriod(key, keyBudget.period, day);
    // A job is charged to the period in which it ends, so all reservations count against the current one.
    if (spent + key.reserved + maxCost > keyBudget.amount) {
      const resetsAt = nextPeriodStart(keyBudget.period, day) * DAY_MS;
      return { kind: 'key_budget_exceeded', needed: maxCost, budget: keyBudget, spent, reserved: key.reserved, resetsAt };
    }
  }
  return null;
}

/** The record under which the job will be settled. Throws {@link LedgerError} `invalid` if the maximum cost is too large. */
export function jobReservation(
  reservation: Reservation,
  coordinatorId: string,
  maxCost: MicroUsd = maxCostOf(reservation),
): JobReservation {
  return {
    jobId: reservation.jobId,
    accountId: reservation.accountId,
    apiKeyId: reservation.apiKeyId,
    model: reservation.model,
    endpoint: reservation.endpoint,
    maxCost,
    priceId: reservation.price.id,
    rates: reservation.price,
    maxPromptTokens: reservation.maxPromptTokens,
    maxCompletionTokens: reservation.maxCompletionTokens,
    maxImages: reservation.images ?? 0,
    coordinatorId,
    reservedAt: reservation.at,
  };
}

interface SettleStep {
  readonly settlement: Settlement;
  readonly leased?: LeasedJob;
}

function settle(draft: LedgerDraft, step: SettleStep, rules: LedgerRules): SettleOutcome {
  const found = reservedJob(draft, step);
  if (found.kind !== 'reserved') return found;
  const { lease } = found;
  const { jobId, providerId, at } = step.settlement;
  const reservation = repriced(found.reservation, step.settlement);
  const { accountId, apiKeyId, maxCost } = reservation;
  const earner = draft.earner(providerId);
  const settlement = chargedSettlement(step.settlement, reservation, { earner, rules });
  const { cost, earned, fee } = settlement;
  // A lease never pays more than it holds.
  if (lease !== undefined && lease.amount < cost) return { kind: 'released_before' };
  postCharge(draft, settlement, { jobId, payer: accountId, earner, at });
  if (lease === undefined) draft.addReserved(accountId, apiKeyId, -maxCost);
  else draft.takeFromLease(accountId, lease, step.leased?.isLeaseClosing === true ? Math.min(maxCost, lease.amount) : cost);
  draft.addSpent(apiKeyId, cost, at);
  draft.putJob({ state: 'settled', reservation, isRepriced: reservation !== found.reservation, endedAt: at, settlement });
  return { kind: 'settled', cost, earned, fee };
}

type ReservedJob = { readonly kind: 'reserved'; readonly reservation: JobReservation; readonly lease: LeaseAmount | undefined };

/** The reservation to settle, or the outcome of a settlement without one. `lease`: the job is reserved from it, without a row. */
function reservedJob(draft: LedgerDraft, { settlement: { jobId }, leased }: SettleStep): ReservedJob | SettleOutcome {
  const stored = draft.job(jobId);
  if (stored?.state === 'settled') return { kind: 'already_settled', cost: stored.settlement.cost };
  if (stored?.state === 'released') return { kind: 'released_before' };
  if (stored !== undefined) return { kind: 'reserved', reservation: stored.reservation, lease: undefined };
  if (leased === undefined) return { kind: 'unknown_job' };
  const lease = draft.lease(leased.leaseId);
  // The lease has expired and was deleted, together with the reservations from it.
  if (lease === undefined) return { kind: 'released_before' };
  return { kind: 'reserved', reservation: leased.reservation, lease };
}

/** Limits counts and cost to the reservation, and divides the cost between provider and network. */
function chargedSettlement(
  settlement: Settlement,
  reservation: JobReservation,
  { earner, rules }: { readonly earner: string; readonly rules: LedgerRules },
): JobSettlement {
  const promptTokens = Math.min(settlement.promptTokens, reservation.maxPromptTokens);
  const completionTokens = Math.min(settlement.completionTokens, reservation.maxCompletionTokens);
  const cachedTokens = Math.min(settlement.cachedTokens, promptTokens);
  const images = Math.min(settlement.images ?? 0, reservation.maxImages);
  const isFree = rules.ownMachinesFree && earner === reservation.accountId;
  const cost = isFree
    ? microUsd(0)
    : microUsd(Math.min(reservation.maxCost, costOf(reservation.rates, { promptTokens, cachedTokens, completionTokens, images })));
  const earned = microUsd(Math.floor((cost * rules.providerSharePercent) / 100));
  return {
    providerId: settlement.providerId,
    earner: isFree ? null : earner,
    promptTokens,
    completionTokens,
    hiddenTokens: Math.min(settlement.hiddenTokens, completionTokens),
    cachedTokens,
    images,
    cost,
    earned,
    fee: microUsd(cost - earned),
  };
}

interface ChargeParties {
  readonly jobId: JobId;
  readonly payer: string;
  readonly earner: string;
  readonly at: number;
}

/** Posts a charge. The payer's deposited money is used before its earnings, which can be withdrawn. */
function postCharge(draft: LedgerDraft, { cost, earned, fee }: JobSettlement, { jobId, payer, earner, at }: ChargeParties): void {
  const balance = draft.balance(payer);
  const deposited = balance.balance - balance.earned;
  const fromEarnings = (amount: number): number => Math.max(0, amount - deposited);
  const fees = { account: FEES, amount: fee, earned: 0 };
  const isOwnProvider = earner === payer;
  // For an own provider, its share stays in the balance as it was, and the account pays only the fee.
  const postings = isOwnProvider
    ? [{ account: earner, amount: -fee, earned: -fromEarnings(fee) }, fees]
    : [{ account: payer, amount: -cost, earned: -fromEarnings(cost) }, { account: earner, amount: earned, earned }, fees];
  const ofDeposits = Math.max(0, earned - fromEarnings(cost));
  draft.post(`job:${jobId}`, at, postings);
  if (!isOwnProvider && earned > 0) draft.addEarnings(earner, payer, { earned, ofDeposits }, at);
}

/** Model and price of the fallback model that answered, if one did. The reserved amount is unchanged. */
function repriced(reservation: JobReservation, { served }: Settlement): JobReservation {
  if (served === undefined) return reservation;
  return { ...reservation, model: served.model, priceId: served.price.id, rates: served.price };
}

function release(draft: LedgerDraft, jobId: JobId, at: number): boolean {
  const job = draft.job(jobId);
  if (job === undefined || job.state !== 'reserved') return false;
  const { reservation } = job;
  draft.addReserved(reservation.accountId, reservation.apiKeyId, -reservation.maxCost);
  draft.putJob({ state: 'released', reservation, endedAt: at });
  return true;
}

function deposit(draft: LedgerDraft, { eventId, accountId, amount, source, at }: Deposit): DepositOutcome {
  if (draft.hasDeposit(eventId)) return { kind: 'already_deposited' };
  draft.post(`deposit:${eventId}`, at, [
    { account: accountId, amount, earned: 0 },
    { account: OUTSIDE, amount: -amount, earned: 0 },
  ]);
  draft.putDeposit({ eventId, accountId, amount, source, at });
  return { kind: 'deposited' };
}

function requestWithdrawal(
  draft: LedgerDraft,
  { id, accountId, amount, at }: WithdrawalRequest,
  { maturityDays }: LedgerRules,
): WithdrawalOutcome {
  const known = draft.withdrawal(id);
  if (known !== undefined) {
    if (known.accountId !== accountId || known.amount !== amount) throw new LedgerError('conflict', 'the withdrawal id was used before');
    return { kind: 'requested' };
  }
  const firstDay = firstPendingDay(at, maturityDays);
  const pending = draft.earningsDays(accountId).reduce((sum, { day, amount: earned }) => (day >= firstDay ? sum + earned : sum), 0);
  const withdrawable = withdrawableOf(draft.balance(accountId), pending);
  if (amount > withdrawable) return { kind: 'insufficient', withdrawable };
  draft.post(`withdrawal:${id}:requested`, at, [
    { account: accountId, amount: -amount, earned: -amount },
    { account: WITHDRAWALS, amount, earned: amount },
  ]);
  draft.putWithdrawal({ id, accountId, amount, state: 'requested', requestedAt: at, endedAt: null });
  return { kind: 'requested' };
}

function endWithdrawal(draft: LedgerDraft, id: string, end: WithdrawalEnd, at: number): EndWithdrawalOutcome {
  const withdrawal = draft.withdrawal(id);
  if (withdrawal === undefined) return { kind: 'unknown_withdrawal' };
  if (withdrawal.state !== 'requested') return { kind: 'already_ended', end: withdrawal.state };
  const { amount } = withdrawal;
  const to = end === 'paid' ? { account: OUTSIDE, amount, earned: 0 } : { account: withdrawal.accountId, amount, earned: amount };
  draft.post(`withdrawal:${id}:${end}`, at, [{ account: WITHDRAWALS, amount: -amount, earned: -amount }, to]);
  draft.putWithdrawal({ ...withdrawal, state: end, endedAt: at });
  return { kind: 'ended' };
}

/** Maximum cost of a job. Throws {@link LedgerError} `invalid` above {@link MAX_PER_STEP}. */
function maxCostOf({ price, maxPromptTokens, maxCompletionTokens, images = 0 }: Reservation): MicroUsd {
  let amount: MicroUsd;
  try {
    amount = costOf(price, { promptTokens: maxPromptTokens, completionTokens: maxCompletionTokens, images });
  } catch (error) {
    throw new LedgerError('invalid', 'the maximum cost exceeds exact integers', { cause: error });
  }
  if (amount > MAX_PER_STEP) throw new LedgerError('invalid', 'the maximum cost exceeds the maximum amount of a step');
  return amount;
}

/** Counterparty outside the ledger: its balance is all payouts minus all deposits. Customer accounts never begin with `system:`. */
const OUTSIDE = 'system:outside';
/** The ledger's own account for requested withdrawals that are not paid yet. */
export const WITHDRAWALS = 'system:withdrawals';

/**
 * First UTC day (days since 1970) whose earnings are still pending at `now`, or Infinity if earnings mature at once.
 *
 * All earnings of a day mature together, when the newest is `maturityDays` old.
 */
export function firstPendingDay(now: number, maturityDays: number): number {
  return maturityDays === 0 ? Number.POSITIVE_INFINITY : Math.floor(now / DAY_MS) - maturityDays;
}

/** When the earnings of a day (days since 1970) mature, in milliseconds since 1970. */
export function maturesAt(day: number, maturityDays: number): number {
  return (day + 1 + maturityDays) * DAY_MS;
}
