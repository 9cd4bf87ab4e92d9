/** Console API schemas: balance, earnings by day, deposits and their receipts, withdrawals and payouts. */
import { NAME_PATTERN } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { count, day, MAX_AMOUNT_MICRO_USD, microUsd, nullable, page, requestBody, time, timeOrNull, usd } from './schema-parts.js';

export const ConsoleBalanceSchema = Type.Object({
  balance_micro_usd: microUsd,
  balance_usd: usd,
  /** Reserved for running requests; part of the balance. */
  reserved_micro_usd: microUsd,
  reserved_usd: usd,
  /** Earnings after maturity. */
  withdrawable_micro_usd: microUsd,
  withdrawable_usd: usd,
  /** Earnings before maturity; part of the balance. */
  pending_micro_usd: microUsd,
  pending_usd: usd,
  /** When pending earnings mature, earliest first. At most one entry per day. */
  maturing: Type.Array(Type.Object({ at: time, amount_micro_usd: microUsd })),
});
export type ConsoleBalance = Static<typeof ConsoleBalanceSchema>;

/** `GET /console/v1/earnings/days`: one row per day (UTC) and machine, oldest first. */
export const ConsoleEarningDaysSchema = Type.Object({
  from: day,
  to: day,
  data: Type.Array(Type.Object({ day, provider_id: Type.String(), jobs: count, tokens: count, earned_micro_usd: microUsd })),
});
export type ConsoleEarningDays = Static<typeof ConsoleEarningDaysSchema>;

export const ConsoleDepositSchema = Type.Object({
  id: Type.String(),
  amount_micro_usd: microUsd,
  source: Type.Union([Type.Literal('stripe'), Type.Literal('development'), Type.Literal('admin')]),
  state: Type.Union([Type.Literal('open'), Type.Literal('paid'), Type.Literal('expired'), Type.Literal('failed')]),
  created_at: time,
  ended_at: timeOrNull,
  refunded_micro_usd: microUsd,
  disputed_at: timeOrNull,
});
export type ConsoleDeposit = Static<typeof ConsoleDepositSchema>;
export const ConsoleDepositPageSchema = page(ConsoleDepositSchema);
export type ConsoleDepositPage = Static<typeof ConsoleDepositPageSchema>;

/** `checkout_url`: the payment page; null if nothing remains to pay. */
export const ConsoleNewDepositSchema = Type.Object({
  deposit: ConsoleDepositSchema,
  checkout_url: Type.Union([Type.String(), Type.Null()]),
});
export type ConsoleNewDeposit = Static<typeof ConsoleNewDepositSchema>;

/** NAME_PATTERN without its anchors `^` and `$`. */
const line = NAME_PATTERN.slice(1, -1);
const MAX_ADDRESS_LINES = 8;
const billingName = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: NAME_PATTERN,
});
const billingAddress = Type.String({
  minLength: 1,
  maxLength: 500,
  pattern: `^${line}(?:\\n${line}){0,${MAX_ADDRESS_LINES - 1}}$`,
});
const taxId = Type.String({ minLength: 1, maxLength: 50, pattern: NAME_PATTERN });

/** `GET`, `PUT /console/v1/billing-details`: name, address and tax id for deposit receipts; null where not set. */
export const ConsoleBillingDetailsSchema = Type.Object({
  name: nullable(Type.String()),
  address: nullable(Type.String()),
  tax_id: nullable(Type.String()),
});
export type ConsoleBillingDetails = Static<typeof ConsoleBillingDetailsSchema>;

/** Replaces all details. */
export const UpdateBillingDetailsSchema = requestBody({
  name: Type.Union([billingName, Type.Null()], { description: 'a line of 1 to 200 characters, or null' }),
  address: Type.Union([billingAddress, Type.Null()], {
    description: `1 to 500 characters in at most ${MAX_ADDRESS_LINES} lines, separated by \\n, or null`,
  }),
  tax_id: Type.Union([taxId, Type.Null()], { description: 'a line of 1 to 50 characters, or null' }),
});
export type UpdateBillingDetails = Static<typeof UpdateBillingDetailsSchema>;

/** `GET /console/v1/deposits/{deposit_id}`: a deposit, with everything that its deposit receipt shows. */
export const ConsoleDepositReceiptSchema = Type.Object({
  deposit: ConsoleDepositSchema,
  currency: Type.Literal('usd'),
  /** Details of the operator, as far as configured. */
  operator: ConsoleBillingDetailsSchema,
  account: Type.Object({ name: Type.String(), email: Type.String() }),
  billing_details: ConsoleBillingDetailsSchema,
});
export type ConsoleDepositReceipt = Static<typeof ConsoleDepositReceiptSchema>;

export const ConsoleWithdrawalSchema = Type.Object({
  id: Type.String(),
  account_id: Type.String(),
  amount_micro_usd: microUsd,
  state: Type.Union([Type.Literal('requested'), Type.Literal('paid'), Type.Literal('rejected')]),
  created_at: time,
  ended_at: timeOrNull,
});
export type ConsoleWithdrawal = Static<typeof ConsoleWithdrawalSchema>;
export const ConsoleWithdrawalPageSchema = page(ConsoleWithdrawalSchema);

/** `GET`, `PUT /console/v1/low-balance-alert`. `available`: whether mail works. `threshold_micro_usd`: null without an alert. */
export const ConsoleLowBalanceAlertSchema = Type.Object({ available: Type.Boolean(), threshold_micro_usd: nullable(microUsd) });
export type ConsoleLowBalanceAlert = Static<typeof ConsoleLowBalanceAlertSchema>;

export const UpdateLowBalanceAlertSchema = requestBody({
  threshold_micro_usd: Type.Union([Type.Integer({ minimum: 1, maximum: MAX_AMOUNT_MICRO_USD }), Type.Null()], {
    description: `a whole number of micro-USD from 1 to ${MAX_AMOUNT_MICRO_USD}, or null for no alert`,
  }),
});

export const AmountSchema = requestBody({
  amount_micro_usd: Type.Integer({
    minimum: 1,
    maximum: MAX_AMOUNT_MICRO_USD,
    description: `a whole number of micro-USD from 1 to ${MAX_AMOUNT_MICRO_USD}`,
  }),
});
export type Amount = Static<typeof AmountSchema>;

/** The account at the payment processor to which withdrawals are paid. `onboarding_url`: the processor's sign-up page. */
export const ConsolePayoutAccountSchema = Type.Object({ ready: Type.Boolean(), onboarding_url: Type.Union([Type.String(), Type.Null()]) });
export type ConsolePayoutAccount = Static<typeof ConsolePayoutAccountSchema>;
