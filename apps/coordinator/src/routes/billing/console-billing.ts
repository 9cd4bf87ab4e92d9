/** Routes under `/console/v1` for the money of the account that the session acts for: balance, earnings, deposits, withdrawals, payouts. */
import { randomUUID } from 'node:crypto';
import {
  AmountSchema,
  ConsoleBalanceSchema,
  type ConsoleDeposit,
  ConsoleDepositPageSchema,
  ConsoleEarningDaysSchema,
  ConsoleNewDepositSchema,
  ConsolePayoutAccountSchema,
  type ConsoleWithdrawal,
  ConsoleWithdrawalPageSchema,
  ConsoleWithdrawalSchema,
  RequestError,
} from '@inference/formats';
import type { Ledger } from '../../billing/ledger/ledger.js';
import { formatUsd } from '../../billing/micro-usd.js';
import type { Deposits } from '../../billing/payments/deposits.js';
import { centsOf, type PaymentProcessor } from '../../billing/payments/payment-processor.js';
import type { Withdrawals } from '../../billing/payments/withdrawals.js';
import type { DepositOrder, PaymentRepository, Withdrawal } from '../../database/payment-repository.js';
import type { Database } from '../../database/tables.js';
import { earningDays } from '../../database/usage-repository.js';
import { errorFacts, type Log } from '../../log.js';
import { readPageQuery, toPage } from '../parameters/pagination.js';
import { dayText, isoTime, isoTimeOrNull, readDayRange } from '../parameters/times.js';
import type { ConsoleApi } from '../plugins/console-api.js';
import { maturingBody } from './payments.js';

interface MoneyRoutes {
  readonly database: Database;
  readonly ledger: Pick<Ledger, 'balance' | 'pendingEarnings'>;
  readonly payments: PaymentRepository;
  readonly deposits: Deposits;
  readonly withdrawals: Withdrawals;
  /** Without a payment processor, there are no checkouts and no automatic payouts. */
  readonly processor: PaymentProcessor | null;
  /** Whether accounts can credit themselves without payment. */
  readonly development: boolean;
  readonly now: () => number;
  readonly log: Log;
}

export const MIN_DEPOSIT_MICRO_USD = 1_000_000;
export const MIN_WITHDRAWAL_MICRO_USD = 1_000_000;
/** Console page to which the payment processor returns after a checkout. */
const BILLING_PAGE = '/balance';
/** Console page to which the payment processor returns after the owner has entered payout details. */
const PAYOUT_PAGE = '/earnings';

export function addMoneyRoutes(api: ConsoleApi, routes: MoneyRoutes): void {
  addReports(api, routes);
  addDeposits(api, routes);
  addWithdrawals(api, routes);
}

function addReports(api: ConsoleApi, { database, ledger, now }: MoneyRoutes): void {
  api.add({ method: 'GET', path: '/balance', response: ConsoleBalanceSchema }, async ({ caller }) => {
    const { balance, reserved, withdrawable } = await ledger.balance(caller.account.id);
    const pending = await ledger.pendingEarnings(caller.account.id);
    return {
      balance_micro_usd: balance,
      balance_usd: formatUsd(balance),
      reserved_micro_usd: reserved,
      reserved_usd: formatUsd(reserved),
      withdrawable_micro_usd: withdrawable,
      withdrawable_usd: formatUsd(withdrawable),
      pending_micro_usd: pending.total,
      pending_usd: formatUsd(pending.total),
      maturing: maturingBody(pending),
    };
  });

  api.add({ method: 'GET', path: '/earnings/days', response: ConsoleEarningDaysSchema }, async ({ caller, query }) => {
    const range = readDayRange(query, now());
    const rows = await earningDays(database, caller.account.id, range);
    return {
      from: dayText(range.from),
      to: dayText(range.to),
      data: rows.map((row) => ({
        day: dayText(row.day),
        provider_id: row.providerId,
        jobs: row.jobs,
        tokens: row.tokens,
        earned_micro_usd: row.earned,
      })),
    };
  });
}

function addDeposits(api: ConsoleApi, { payments, deposits, processor, development, log }: MoneyRoutes): void {
  api.add({ method: 'GET', path: '/deposits', response: ConsoleDepositPageSchema }, async ({ caller, query }) => {
    const { limit, after } = readPageQuery(query);
    const orders = await payments.listOrders({ accountId: caller.account.id, limit: limit + 1, after });
    return toPage(orders, limit, (order) => ({ at: order.createdAt, id: order.id }), depositBody);
  });

  api.add(
    { method: 'POST', path: '/deposits', body: AmountSchema, response: ConsoleNewDepositSchema, status: 201 },
    async ({ caller, body, origin }) => {
      if (processor === null) throw new RequestError('not_configured', null, 'This coordinator takes no payments.');
      requireAmount(body.amount_micro_usd, MIN_DEPOSIT_MICRO_USD);
      const customer = { accountId: caller.account.id, email: caller.email };
      const opened = await deposits.open(processor, customer, body.amount_micro_usd, origin + BILLING_PAGE);
      if (opened.kind === 'failed') {
        log.error({ error: errorFacts(opened.error) }, 'checkout failed');
        throw new RequestError('payment_service_failed', null, 'The payment service did not answer. Nothing was charged.');
      }
      return { deposit: depositBody(opened.order), checkout_url: opened.url };
    },
  );

  api.add(
    { method: 'POST', path: '/deposits/development', body: AmountSchema, response: ConsoleNewDepositSchema, status: 201 },
    async ({ caller, body }) => {
      if (!development) throw new RequestError('forbidden', null, 'Free deposits exist in development mode only.');
      const order = await deposits.credit(randomUUID(), caller.account.id, body.amount_micro_usd, 'development');
      return { deposit: depositBody(order), checkout_url: null };
    },
  );
}

function addWithdrawals(api: ConsoleApi, { ledger, payments, withdrawals, processor, now, log }: MoneyRoutes): void {
  api.add({ method: 'GET', path: '/withdrawals', response: ConsoleWithdrawalPageSchema }, async ({ caller, query }) => {
    const { limit, after } = readPageQuery(query);
    const rows = await payments.listWithdrawals({ accountId: caller.account.id, state: null, limit: limit + 1, after });
    return toPage(rows, limit, (row) => ({ at: row.requestedAt, id: row.id }), withdrawalBody);
  });

  api.add(
    { method: 'POST', path: '/withdrawals', body: AmountSchema, response: ConsoleWithdrawalSchema, status: 201 },
    async ({ caller, body }) => {
      requireAmount(body.amount_micro_usd, MIN_WITHDRAWAL_MICRO_USD);
      const { id, outcome } = await withdrawals.request(caller.account.id, body.amount_micro_usd);
      if (outcome.kind === 'insufficient') {
        const { total } = await ledger.pendingEarnings(caller.account.id);
        const later = total === 0 ? '' : ` ${formatUsd(total)} USD of earnings are pending and can be withdrawn later.`;
        const max = `At most ${formatUsd(outcome.withdrawable)} USD can be withdrawn.${later}`;
        throw new RequestError('conflict', 'amount_micro_usd', max);
      }
      const row = await payments.findWithdrawal(id);
      if (row === null) throw new Error('the withdrawal that was just requested is missing');
      return withdrawalBody(row);
    },
  );

  api.add({ method: 'POST', path: '/payout-account', response: ConsolePayoutAccountSchema }, async ({ caller, origin }) => {
    if (processor === null) throw new RequestError('not_configured', null, 'This coordinator pays withdrawals manually.');
    const accountId = caller.account.id;
    try {
      let payoutId = await payments.findPayoutAccount(accountId);
      if (payoutId === null) {
        await payments.setPayoutAccount(accountId, await processor.openPayoutAccount({ accountId, email: caller.email }), now());
        payoutId = await payments.findPayoutAccount(accountId);
      }
      if (payoutId === null) throw new Error('the payout account that was just created is missing');
      const { ready, onboardingUrl } = await processor.payoutAccount(payoutId, origin + PAYOUT_PAGE);
      return { ready, onboarding_url: onboardingUrl };
    } catch (error) {
      log.error({ error: errorFacts(error) }, 'payout account failed');
      throw new RequestError('payment_service_failed', null, 'The payment service did not answer. Try again.');
    }
  });
}

function requireAmount(amount: number, min: number): void {
  if (amount >= min && centsOf(amount) !== null) return;
  throw new RequestError('invalid_request', 'amount_micro_usd', `amount_micro_usd must be whole cents (10,000 each) of at least ${min}.`);
}

export function depositBody(order: DepositOrder): ConsoleDeposit {
  return {
    id: order.id,
    amount_micro_usd: order.amount,
    source: order.source,
    state: order.state,
    created_at: isoTime(order.createdAt),
    ended_at: isoTimeOrNull(order.endedAt),
    refunded_micro_usd: order.refunded,
    disputed_at: isoTimeOrNull(order.disputedAt),
  };
}

export function withdrawalBody(withdrawal: Withdrawal): ConsoleWithdrawal {
  return {
    id: withdrawal.id,
    account_id: withdrawal.accountId,
    amount_micro_usd: withdrawal.amount,
    state: withdrawal.state,
    created_at: isoTime(withdrawal.requestedAt),
    ended_at: isoTimeOrNull(withdrawal.endedAt),
  };
}
