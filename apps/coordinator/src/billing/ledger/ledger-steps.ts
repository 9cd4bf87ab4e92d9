/** The steps that are gathered into transactions: one union, the check of their values, and the rows each one needs. */
import type { JobId } from '@inference/protocol';
import type { RowKeys } from '../../database/ledger/locked-rows.js';
import { MAX_PER_STEP } from '../micro-usd.js';
import type { Deposit, Reservation, Settlement, WithdrawalEnd, WithdrawalRequest } from './ledger.js';
import { LedgerError } from './ledger-error.js';

export type Step =
  | { readonly type: 'reserve'; readonly reservation: Reservation }
  | { readonly type: 'settle'; readonly settlement: Settlement }
  | { readonly type: 'release'; readonly jobId: JobId; readonly at: number }
  | { readonly type: 'deposit'; readonly deposit: Deposit }
  | { readonly type: 'request_withdrawal'; readonly request: WithdrawalRequest }
  | { readonly type: 'end_withdrawal'; readonly id: string; readonly end: WithdrawalEnd; readonly at: number };

const MAX_ID_CHARACTERS = 256;

/** Throws {@link LedgerError} `invalid` for values that no honest caller has. */
export function checkStep(step: Step): void {
  switch (step.type) {
    case 'reserve': {
      const { jobId, accountId, apiKeyId, keySpendLimit, model, price, ...rest } = step.reservation;
      for (const [name, id] of Object.entries({ jobId, apiKeyId, model, priceId: price.id })) checkId(name, id);
      checkAccount(accountId);
      checkCount('maxPromptTokens', rest.maxPromptTokens);
      checkCount('maxCompletionTokens', rest.maxCompletionTokens);
      checkCount('images', rest.images ?? 0);
      checkCount('promptPerMillion', price.promptPerMillion);
      checkCount('completionPerMillion', price.completionPerMillion);
      checkCount('perImage', price.perImage);
      if (keySpendLimit !== null) checkCount('keySpendLimit', keySpendLimit);
      checkCount('at', rest.at);
      return;
    }
    case 'settle': {
      const { jobId, providerId, ...counts } = step.settlement;
      checkId('jobId', jobId);
      checkId('providerId', providerId);
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

/** The rows that these steps read. */
export function needsOf(steps: readonly Step[]): RowKeys {
  const needs = { jobs: new Set<string>(), providers: new Set<string>(), accounts: new Set<string>(), keys: new Set<string>() };
  const moneyNeeds = { deposits: new Set<string>(), withdrawals: new Set<string>(), maturing: new Set<string>() };
  for (const step of steps) {
    switch (step.type) {
      case 'reserve':
        needs.jobs.add(step.reservation.jobId);
        needs.accounts.add(step.reservation.accountId);
        needs.keys.add(step.reservation.apiKeyId);
        break;
      case 'settle':
        needs.jobs.add(step.settlement.jobId);
        needs.providers.add(step.settlement.providerId);
        break;
      case 'release':
        needs.jobs.add(step.jobId);
        break;
      case 'deposit':
        moneyNeeds.deposits.add(step.deposit.eventId);
        needs.accounts.add(step.deposit.accountId);
        break;
      case 'request_withdrawal':
        moneyNeeds.withdrawals.add(step.request.id);
        needs.accounts.add(step.request.accountId);
        moneyNeeds.maturing.add(step.request.accountId);
        break;
      case 'end_withdrawal':
        moneyNeeds.withdrawals.add(step.id);
        break;
      default:
        step satisfies never;
    }
  }
  return { ...needs, ...moneyNeeds };
}

function checkId(name: string, value: string): void {
  if (typeof value !== 'string' || value === '' || value.length > MAX_ID_CHARACTERS) throw new LedgerError('invalid', `${name} is no id`);
}

/** The ledger's own accounts have a colon in their names; customers' ids have none. */
export function checkAccount(value: string): void {
  checkId('accountId', value);
  if (value.includes(':')) throw new LedgerError('invalid', 'that account is not a customer');
}

function checkCount(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw new LedgerError('invalid', `${name} must be a whole number`);
}

function checkAmount(value: number): void {
  if (!Number.isSafeInteger(value) || value <= 0 || value > MAX_PER_STEP) {
    throw new LedgerError('invalid', `an amount must be a whole number of micro-USD from 1 to ${MAX_PER_STEP}`);
  }
}
