/** Admin API schemas: accounts, manual deposits, withdrawals, earnings concentration, linking of providers to accounts. */
import Type, { type Static } from 'typebox';
import { ConsoleDepositSchema } from './billing.js';
import { AdminMemberSchema } from './organisations.js';
import { day, MAX_AMOUNT_MICRO_USD, page, requestBody, time, timeOrNull } from './schema-parts.js';

export const AdminAccountSchema = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** Null for accounts without a sign-in, such as organisations and closed accounts. */
  email: Type.Union([Type.String(), Type.Null()]),
  created_at: time,
  is_admin: Type.Boolean(),
  is_organisation: Type.Boolean(),
  suspended_at: timeOrNull,
  deleted_at: timeOrNull,
});
export type AdminAccount = Static<typeof AdminAccountSchema>;
const AdminAccountNameSchema = Type.Object({ id: Type.String(), name: Type.String(), email: Type.Union([Type.String(), Type.Null()]) });

/** `GET /admin/v1/accounts/{id}`. */
export const AdminAccountViewSchema = Type.Interface([AdminAccountSchema], {
  balance_micro_usd: Type.Integer(),
  reserved_micro_usd: Type.Integer(),
  withdrawable_micro_usd: Type.Integer(),
  /** Earnings before maturity. */
  pending_micro_usd: Type.Integer(),
  two_factor_enabled: Type.Boolean(),
  passkey_count: Type.Integer(),
  /** Machines that earn for the account. */
  machines: Type.Array(Type.String()),
  /** Members of an organisation; empty for a personal account. */
  members: Type.Array(AdminMemberSchema),
});
export type AdminAccountView = Static<typeof AdminAccountViewSchema>;
export const AdminAccountPageSchema = page(AdminAccountSchema);

/** Absent members remain unchanged. */
export const UpdateAccountSchema = requestBody({
  suspended: Type.Optional(Type.Boolean({ description: 'a boolean' })),
  is_admin: Type.Optional(Type.Boolean({ description: 'a boolean' })),
});

/** Manual deposit. `reference` is an idempotency key: reuse with a different account or amount is a conflict. */
export const AdminDepositSchema = requestBody({
  amount_micro_usd: Type.Integer({
    minimum: 1,
    maximum: MAX_AMOUNT_MICRO_USD,
    description: `a whole number of micro-USD from 1 to ${MAX_AMOUNT_MICRO_USD}`,
  }),
  reference: Type.String({
    pattern: '^[A-Za-z0-9._-]{1,64}$',
    description: 'a text of 1 to 64 letters, digits, dots, dashes and underscores that names this deposit',
  }),
});

export const AdminDepositPageSchema = page(Type.Interface([ConsoleDepositSchema], { account_id: Type.String() }));
export type AdminDepositPage = Static<typeof AdminDepositPageSchema>;

/**
 * `GET /admin/v1/earnings/concentration`: owners who earn a large share from one payer.
 *
 * Lists pairs of owner and payer in which share and amount reach the minimums, largest amount first, up to a limit.
 */
export const AdminEarningsConcentrationSchema = Type.Object({
  /** First and last day of the report (UTC). */
  from: day,
  to: day,
  min_share_percent: Type.Integer(),
  min_micro_usd: Type.Integer(),
  data: Type.Array(
    Type.Object({
      /** Null for a machine without an owner. */
      owner: Type.Union([AdminAccountNameSchema, Type.Null()]),
      /** The machine without an owner; null if `owner` is set. */
      provider_id: Type.Union([Type.String(), Type.Null()]),
      payer: AdminAccountNameSchema,
      /** The owner's earnings from this payer. */
      earned_micro_usd: Type.Integer(),
      /** The owner's earnings from all payers except itself. */
      owner_earned_micro_usd: Type.Integer(),
      /** The payer's payments to all owners except itself. */
      payer_paid_micro_usd: Type.Integer(),
      /** The payer's share of the owner's earnings, in percent, rounded down. */
      owner_share_percent: Type.Integer(),
      /** The owner's share of the payer's payments, in percent, rounded down. */
      payer_share_percent: Type.Integer(),
    }),
  ),
});
export type AdminEarningsConcentration = Static<typeof AdminEarningsConcentrationSchema>;

export const EndWithdrawalSchema = requestBody({
  /** `transfer` pays through the payment processor; `paid` records a payment by other means. */
  end: Type.Union([Type.Literal('paid'), Type.Literal('rejected'), Type.Literal('transfer')], {
    description: 'one of paid, rejected and transfer',
  }),
});

/** Links a provider to an account, which becomes its owner. */
export const LinkMachineSchema = requestBody({
  account_id: Type.String({ minLength: 1, maxLength: 64, description: 'the id of an account' }),
});
