/** Ledger steps as data: parameters, outcome and validation of each type, and the keys of the rows that a batch of steps locks. */
import type { JobId } from '@inference/protocol';
import type { RowKeys } from '../../database/ledger/ledger-repository.js';
import type { SealedNonce } from '../../database/sealed-nonce-repository.js';
import { MAX_PER_STEP } from '../micro-usd.js';
import type { Rates } from '../prices/price.js';
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
import { LedgerError } from './ledger-error.js';

interface StepParameters {
  readonly reserve: { readonly reservation: Reservation };
  readonly take_nonce: { readonly nonce: SealedNonce };
  /** A reservation from a credit lease (`leased`) is only in memory, so its job has no row before the settlement. */
  readonly settle: { readonly settlement: Settlement; readonly leased?: LeasedJob };
  readonly release: { readonly jobId: JobId; readonly at: number };
  readonly deposit: { readonly deposit: Deposit };
  readonly request_withdrawal: { readonly request: WithdrawalRequest };
  readonly end_withdrawal: { readonly id: string; readonly end: WithdrawalEnd; readonly at: number };
}

export interface StepOutcomes {
  readonly reserve: ReserveOutcome;
  /** False if another job has taken the nonce. */
  readonly take_nonce: boolean;
  readonly settle: SettleOutcome;
  /** False if nothing was reserved. */
  readonly release: boolean;
  readonly deposit: DepositOutcome;
  readonly request_withdrawal: WithdrawalOutcome;
  readonly end_withdrawal: EndWithdrawalOutcome;
}

export type StepType = keyof StepParameters;
export type Step = { [T in StepType]: { readonly type: T } & StepParameters[T] }[StepType];
export type StepOutcome = StepOutcomes[StepType];

const MAX_ID_CHARACTERS = 256;

/** Throws {@link LedgerError} `invalid` for malformed values. */
export function checkStep(step: Step): void {
  switch (step.type) {
    case 'reserve': {
      const { jobId, accountId, apiKeyId, keySpendLimit, keyBudget = null, model, price, ...rest } = step.reservation;
      for (const [name, id] of Object.entries({ jobId, apiKeyId, model, priceId: price.id })) checkId(name, id);
      checkAccount(accountId);
      checkCount('maxPromptTokens', rest.maxPromptTokens);
      checkCount('maxCompletionTokens', rest.maxCompletionTokens);
      checkCount('images', rest.images ?? 0);
      checkRates(price);
      if (keySpendLimit !== null) checkCount('keySpendLimit', keySpendLimit);
      if (keyBudget !== null) checkCount('keyBudget', keyBudget.amount);
      checkCount('at', rest.at);
      if (rest.nonce !== undefined) checkNonce(rest.nonce, jobId);
      return;
    }
    case 'take_nonce':
      checkNonce(step.nonce, step.nonce.jobId);
      return;
    case 'settle': {
      const { jobId, providerId, served, ...counts } = step.settlement;
      checkId('jobId', jobId);
      checkId('providerId', providerId);
      if (served !== undefined) {
        checkId('model', served.model);
        checkId('priceId', served.price.id);
        checkRates(served.price);
      }
      for (const [name, count] of Object.entries({ ...counts, images: counts.images ?? 0 })) checkCount(name, count);
      return;
    }
    case 'release':
      checkId('jobId', step.jobId);
      checkCount('at', step.at);
      return;
    case 'deposit':
      checkId('eventId', step.deposit.eventId);
      checkAccount(step.deposit.accountId);
      checkAmount(step.deposit.amount);
      checkCount('at', step.deposit.at);
      return;
    case 'request_withdrawal':
      checkId('id', step.request.id);
      checkAccount(step.request.accountId);
      checkAmount(step.request.amount);
      checkCount('at', step.request.at);
      return;
    case 'end_withdrawal':
      checkId('id', step.id);
      checkCount('at', step.at);
      return;
    default:
      step satisfies never;
  }
}

function checkRates({ promptPerMillion, cachedPerMillion, completionPerMillion, perImage }: Rates): void {
  checkCount('promptPerMillion', promptPerMillion);
  checkCount('cachedPerMillion', cachedPerMillion ?? 0);
  // Reservations assume that no token is cached, so cached tokens must not cost more.
  if ((cachedPerMillion ?? 0) > promptPerMillion) throw new LedgerError('invalid', 'cachedPerMillion exceeds promptPerMillion');
  checkCount('completionPerMillion', completionPerMillion);
  checkCount('perImage', perImage);
}

/** Keys of the rows that a batch reads or changes. */
export function rowKeysOf(steps: readonly Step[]): RowKeys {
  const keys: RowKeys = {
    nonces: new Map(),
    jobs: new Set(),
    providers: new Set(),
    accounts: new Set(),
    apiKeys: new Set(),
    leases: new Set(),
    deposits: new Set(),
    withdrawals: new Set(),
    earningsDays: new Set(),
  };
  for (const step of steps) {
    switch (step.type) {
      case 'reserve':
        keys.jobs.add(step.reservation.jobId);
        keys.accounts.add(step.reservation.accountId);
        keys.apiKeys.add(step.reservation.apiKeyId);
        if (step.reservation.nonce !== undefined) addNonce(keys, step.reservation.nonce);
        break;
      case 'take_nonce':
        addNonce(keys, step.nonce);
        break;
      case 'settle':
        keys.jobs.add(step.settlement.jobId);
        keys.providers.add(step.settlement.providerId);
        if (step.leased !== undefined) {
          keys.accounts.add(step.leased.reservation.accountId);
          keys.apiKeys.add(step.leased.reservation.apiKeyId);
          keys.leases.add(step.leased.leaseId);
        }
        break;
      case 'release':
        keys.jobs.add(step.jobId);
        break;
      case 'deposit':
        keys.deposits.add(step.deposit.eventId);
        keys.accounts.add(step.deposit.accountId);
        break;
      case 'request_withdrawal':
        keys.withdrawals.add(step.request.id);
        keys.accounts.add(step.request.accountId);
        keys.earningsDays.add(step.request.accountId);
        break;
      case 'end_withdrawal':
        keys.withdrawals.add(step.id);
        break;
      default:
        step satisfies never;
    }
  }
  return keys;
}

/** If several steps of the batch have the same nonce, only the first takes the nonce. */
function addNonce({ nonces }: RowKeys, nonce: SealedNonce): void {
  if (!nonces.has(nonce.digest)) nonces.set(nonce.digest, nonce);
}

function checkNonce({ digest, jobId, lifetimeMs }: SealedNonce, ofJob: JobId): void {
  checkId('nonce.digest', digest);
  checkId('nonce.jobId', jobId);
  if (jobId !== ofJob) throw new LedgerError('invalid', 'the nonce is of another job');
  if (!Number.isFinite(lifetimeMs)) throw new LedgerError('invalid', 'nonce.lifetimeMs must be a number');
}

function checkId(name: string, value: string): void {
  if (typeof value !== 'string' || value === '' || value.length > MAX_ID_CHARACTERS) throw new LedgerError('invalid', `${name} is no id`);
}

/** Rejects the ledger's own accounts, whose ids contain a colon. */
export function checkAccount(value: string): void {
  checkId('accountId', value);
  if (value.includes(':')) throw new LedgerError('invalid', 'the account is not a customer');
}

function checkCount(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw new LedgerError('invalid', `${name} must be a whole number`);
}

function checkAmount(value: number): void {
  if (!Number.isSafeInteger(value) || value <= 0 || value > MAX_PER_STEP) {
    throw new LedgerError('invalid', `an amount must be a whole number of micro-USD from 1 to ${MAX_PER_STEP}`);
  }
}
