/** Records of the ledger's tables (jobs, balances, deposits, …), and the functions that convert them from and to database rows. */
import type { JobId, ProviderId } from '@inference/protocol';
import { type MicroUsd, microUsd } from '../../billing/micro-usd.js';
import type { BalanceRow, DepositSource, JobRow, PostingRow, WithdrawalState } from '../tables/ledger.js';
import type { Tables } from '../tables.js';
import type { PeriodSpending } from './key-budget.js';

/** Terms of a reservation. The settlement is priced at these rates, and its counts are limited to these maximums. */
export interface JobReservation {
  readonly jobId: JobId;
  readonly accountId: string;
  readonly apiKeyId: string;
  readonly model: string;
  readonly endpoint: string;
  /** Maximum cost, reserved until the job ends. */
  readonly maxCost: MicroUsd;
  readonly priceId: string;
  readonly rates: {
    readonly promptPerMillion: MicroUsd;
    /** Absent or null: the rate of other prompt tokens. */
    readonly cachedPerMillion?: MicroUsd | null;
    readonly completionPerMillion: MicroUsd;
    readonly perImage: MicroUsd;
  };
  readonly maxPromptTokens: number;
  readonly maxCompletionTokens: number;
  readonly maxImages: number;
  /** Coordinator that runs the job (`ledger_holders.id`). */
  readonly coordinatorId: string;
  /** Milliseconds since 1970. */
  readonly reservedAt: number;
}

/** Usage and charge of a settled job. `cost = earned + fee`. */
export interface JobSettlement {
  readonly providerId: ProviderId;
  /** Credited account; null: a free job on a provider of the requesting account. */
  readonly earner: string | null;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Completion tokens inside think segments. */
  readonly hiddenTokens: number;
  readonly cachedTokens: number;
  readonly images: number;
  readonly cost: MicroUsd;
  readonly earned: MicroUsd;
  readonly fee: MicroUsd;
}

export type LedgerJob =
  | { readonly state: 'reserved'; readonly reservation: JobReservation }
  | { readonly state: 'released'; readonly reservation: JobReservation; readonly endedAt: number }
  | {
      readonly state: 'settled';
      readonly reservation: JobReservation;
      /** True: a fallback model answered, so model and rates differ from the stored reservation. */
      readonly isRepriced?: boolean;
      readonly endedAt: number;
      readonly settlement: JobSettlement;
    };

/** All amounts in micro-USD. */
export interface AccountBalance {
  readonly account: string;
  readonly balance: MicroUsd;
  /** Sum of the maximum costs of the account's running jobs, and of its credit leases. */
  readonly reserved: MicroUsd;
  /** Part of the balance that is earnings. Spending takes deposited money first. */
  readonly earned: MicroUsd;
}

export interface KeySpend extends PeriodSpending {
  readonly apiKeyId: string;
  /** Total cost of the key's jobs. */
  readonly spent: MicroUsd;
  /** Sum of the maximum costs of the key's running jobs, except those reserved from credit leases. */
  readonly reserved: MicroUsd;
  /** Part of `spent` whose job rows were pruned. */
  readonly spentPruned: MicroUsd;
}

export interface DepositRecord {
  readonly eventId: string;
  readonly accountId: string;
  readonly amount: MicroUsd;
  readonly source: DepositSource;
  readonly at: number;
}

export interface WithdrawalRecord {
  readonly id: string;
  readonly accountId: string;
  readonly amount: MicroUsd;
  readonly state: WithdrawalState;
  readonly requestedAt: number;
  readonly endedAt: number | null;
}

/** One side of a double entry. The record has the members of the table row. */
export type Posting = Readonly<Omit<PostingRow, 'seq'>>;

/** Remaining amount of a credit lease, a part of a balance that one coordinator reserves from. The members are those of the row. */
export type LeaseAmount = Readonly<Pick<Tables['credit_leases'], 'id' | 'amount'>>;

/** Earnings of an account on one UTC day. The record has the members of the table row. */
export type EarningsDay = Readonly<Tables['pending_earnings']>;

export interface PayerDay {
  readonly earner: string;
  readonly payer: string;
  /** Days since 1970. */
  readonly day: number;
  readonly earned: number;
  /** Part of `earned` that the payer paid from deposited money. */
  readonly ofDeposits: number;
}

export function jobFromRow(row: Readonly<JobRow>): LedgerJob {
  const reservation: JobReservation = {
    jobId: row.job_id as JobId,
    accountId: row.account_id,
    apiKeyId: row.api_key_id,
    model: row.model,
    endpoint: row.endpoint,
    maxCost: microUsd(row.amount),
    priceId: row.price_id,
    rates: {
      promptPerMillion: microUsd(row.prompt_per_million),
      cachedPerMillion: row.cached_per_million === null ? null : microUsd(row.cached_per_million),
      completionPerMillion: microUsd(row.completion_per_million),
      perImage: microUsd(row.per_image),
    },
    maxPromptTokens: row.max_prompt_tokens,
    maxCompletionTokens: row.max_completion_tokens,
    maxImages: row.max_images,
    coordinatorId: row.holder,
    reservedAt: row.reserved_at,
  };
  // `ended_at` is null exactly while the state is `reserved`.
  const endedAt = row.ended_at ?? 0;
  switch (row.state) {
    case 'reserved':
      return { state: 'reserved', reservation };
    case 'released':
      return { state: 'released', reservation, endedAt };
    case 'settled':
      return { state: 'settled', reservation, endedAt, settlement: settlementFromRow(row) };
    default:
      return row.state satisfies never;
  }
}

function settlementFromRow(row: Readonly<JobRow>): JobSettlement {
  return {
    // Not null in a settled job.
    providerId: row.provider_id as ProviderId,
    earner: row.earner,
    promptTokens: row.prompt_tokens,
    completionTokens: row.completion_tokens,
    hiddenTokens: row.hidden_tokens,
    cachedTokens: row.cached_tokens,
    images: row.images,
    cost: microUsd(row.cost),
    earned: microUsd(row.earned),
    fee: microUsd(row.fee),
  };
}

/** Columns of a job, in the order in which {@link bindJob} appends their values. Not `*`, because newer programs may add columns. */
export const JOB_COLUMNS = [
  'job_id',
  'account_id',
  'api_key_id',
  'model',
  'endpoint',
  'state',
  'amount',
  'price_id',
  'prompt_per_million',
  'cached_per_million',
  'completion_per_million',
  'per_image',
  'max_prompt_tokens',
  'max_completion_tokens',
  'max_images',
  'holder',
  'reserved_at',
  'ended_at',
  'provider_id',
  'earner',
  'prompt_tokens',
  'completion_tokens',
  'hidden_tokens',
  'cached_tokens',
  'images',
  'cost',
  'earned',
  'fee',
] as const satisfies readonly (keyof JobRow)[];

/** The id and the columns that change when a job ends, in the order in which {@link bindJobEnd} appends their values. */
export const JOB_END_COLUMNS = [
  ['job_id', 'text'],
  ['state', 'text'],
  ['ended_at', 'bigint'],
  ['provider_id', 'text'],
  ['earner', 'text'],
  ['prompt_tokens', 'bigint'],
  ['completion_tokens', 'bigint'],
  ['hidden_tokens', 'bigint'],
  ['cached_tokens', 'bigint'],
  ['images', 'bigint'],
  ['cost', 'bigint'],
  ['earned', 'bigint'],
  ['fee', 'bigint'],
] as const satisfies readonly (readonly [keyof JobRow, 'text' | 'bigint'])[];

/** The id and the columns that change if a fallback model answers, in the order in which {@link bindJobTerms} appends their values. */
export const JOB_TERMS_COLUMNS = [
  ['job_id', 'text'],
  ['model', 'text'],
  ['price_id', 'text'],
  ['prompt_per_million', 'bigint'],
  ['cached_per_million', 'bigint'],
  ['completion_per_million', 'bigint'],
  ['per_image', 'bigint'],
] as const satisfies readonly (readonly [keyof JobRow, 'text' | 'bigint'])[];

export function bindJobTerms({ reservation }: LedgerJob, parameters: unknown[]): void {
  const { jobId, model, priceId, rates } = reservation;
  const { promptPerMillion, cachedPerMillion = null, completionPerMillion, perImage } = rates;
  parameters.push(jobId, model, priceId, promptPerMillion, cachedPerMillion, completionPerMillion, perImage);
}

export function bindJob(job: LedgerJob, parameters: unknown[]): void {
  const { reservation } = job;
  parameters.push(
    reservation.jobId,
    reservation.accountId,
    reservation.apiKeyId,
    reservation.model,
    reservation.endpoint,
    job.state,
    reservation.maxCost,
    reservation.priceId,
    reservation.rates.promptPerMillion,
    reservation.rates.cachedPerMillion ?? null,
    reservation.rates.completionPerMillion,
    reservation.rates.perImage,
    reservation.maxPromptTokens,
    reservation.maxCompletionTokens,
    reservation.maxImages,
    reservation.coordinatorId,
    reservation.reservedAt,
  );
  bindEnd(job, parameters);
}

export function bindJobEnd(job: LedgerJob, parameters: unknown[]): void {
  parameters.push(job.reservation.jobId, job.state);
  bindEnd(job, parameters);
}

function bindEnd(job: LedgerJob, parameters: unknown[]): void {
  if (job.state !== 'settled') {
    parameters.push(job.state === 'reserved' ? null : job.endedAt, null, null, 0, 0, 0, 0, 0, 0, 0, 0);
    return;
  }
  const { settlement } = job;
  parameters.push(
    job.endedAt,
    settlement.providerId,
    settlement.earner,
    settlement.promptTokens,
    settlement.completionTokens,
    settlement.hiddenTokens,
    settlement.cachedTokens,
    settlement.images,
    settlement.cost,
    settlement.earned,
    settlement.fee,
  );
}

export function balanceFromRow(row: Readonly<BalanceRow>): AccountBalance {
  return { account: row.account, balance: microUsd(row.balance), reserved: microUsd(row.reserved), earned: microUsd(row.earned) };
}

export function keySpendFromRow(row: Readonly<Tables['key_spend']>): KeySpend {
  return {
    apiKeyId: row.api_key_id,
    spent: microUsd(row.spent),
    reserved: microUsd(row.held),
    spentPruned: microUsd(row.spent_pruned),
    countedDay: row.counted_day,
    daySpent: microUsd(row.day_spent),
    weekSpent: microUsd(row.week_spent),
    monthSpent: microUsd(row.month_spent),
  };
}

export function keySpendToRow(key: KeySpend): Tables['key_spend'] {
  return {
    api_key_id: key.apiKeyId,
    spent: key.spent,
    held: key.reserved,
    spent_pruned: key.spentPruned,
    counted_day: key.countedDay,
    day_spent: key.daySpent,
    week_spent: key.weekSpent,
    month_spent: key.monthSpent,
  };
}

export function depositToRow({ eventId, accountId, amount, source, at }: DepositRecord): Tables['deposits'] {
  return { event_id: eventId, account_id: accountId, amount, source, at };
}

export function withdrawalFromRow(row: Readonly<Tables['withdrawals']>): WithdrawalRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    amount: microUsd(row.amount),
    state: row.state,
    requestedAt: row.requested_at,
    endedAt: row.ended_at,
  };
}

export function withdrawalToRow(withdrawal: WithdrawalRecord): Tables['withdrawals'] {
  return {
    id: withdrawal.id,
    account_id: withdrawal.accountId,
    amount: withdrawal.amount,
    state: withdrawal.state,
    requested_at: withdrawal.requestedAt,
    ended_at: withdrawal.endedAt,
  };
}

export function payerDayToRow({ earner, payer, day, earned, ofDeposits }: PayerDay): Tables['payer_earnings'] {
  return { earner, payer, day, earned, of_deposits: ofDeposits };
}
