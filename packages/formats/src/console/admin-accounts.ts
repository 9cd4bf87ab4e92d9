/** Admin API: accounts, manual deposits, withdrawals, earnings concentration, linking of providers to accounts. */
import Type, { type Static } from 'typebox';
import { ConsoleDepositSchema } from './billing.js';
import { AdminMemberSchema } from './organisations.js';
import { body, day, MAX_AMOUNT_MICRO_USD, page, time, timeOrNull } from './schema-parts.js';

export const AdminAccountSchema = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** Null for accounts without sign-up, such as the development account. */
  email: Type.Union([Type.String(), Type.Null()]),
  created_at: time,
  is_admin: Type.Boolean(),
  is_organisation: Type.Boolean(),
  suspended_at: timeOrNull,
  deleted_at: timeOrNull,
});
export type AdminAccount = Static<typeof AdminAccountSchema>;
/** Account reference in a list. */
const AdminAccountNameSchema = Type.Object({ id: Type.String(), name: Type.String(), email: Type.Union([Type.String(), Type.Null()]) });

/** `GET /admin/v1/accounts/{id}`. */
export const AdminAccountViewSchema = Type.Interface([AdminAccountSchema], {
  balance_micro_usd: Type.Integer(),
  reserved_micro_usd: Type.Integer(),
  withdrawable_micro_usd: Type.Integer(),
  /** Earnings that have not matured. */
  pending_micro_usd: Type.Integer(),
  two_factor_enabled: Type.Boolean(),
  passkey_count: Type.Integer(),
  /** Machines that earn for the account. */
  machines: Type.Array(Type.String()),
  /** Members of an organisation; empty for a person's account. */
  members: Type.Array(AdminMemberSchema),
});
export type AdminAccountView = Static<typeof AdminAccountViewSchema>;
export const AdminAccountPageSchema = page(AdminAccountSchema);

/** Absent fields stay unchanged. */
export const UpdateAccountSchema = body({
  suspended: Type.Optional(Type.Boolean({ description: 'a boolean' })),
  is_admin: Type.Optional(Type.Boolean({ description: 'a boolean' })),
});

/** Manual deposit. A reference is credited once; reuse with another account or amount gives a conflict. */
export const AdminDepositSchema = body({
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
 * `GET /admin/v1/earnings/concentration`. Owner and payer pairs in which the payer's share and amount reach the minimums, largest
 * amount first.
 */
export const AdminEarningsConcentrationSchema = Type.Object({
  /** First and last counted day (UTC). */
  from: day,
  to: day,
  min_share_percent: Type.Integer(),
  min_micro_usd: Type.Integer(),
  data: Type.Array(
    Type.Object({
      /** Null for machines that no account has claimed. */
      owner: Type.Union([AdminAccountNameSchema, Type.Null()]),
      /** The unclaimed machine; null where an account is the owner. */
      provider_id: Type.Union([Type.String(), Type.Null()]),
      payer: AdminAccountNameSchema,
      /** Owner's earnings from this payer. */
      earned_micro_usd: Type.Integer(),
      /** Owner's earnings from all accounts except its own. */
      owner_earned_micro_usd: Type.Integer(),
      /** Payer's payments to all other owners. */
      payer_paid_micro_usd: Type.Integer(),
      /** Payer's share of the owner's earnings in whole percent, rounded down. */
      owner_share_percent: Type.Integer(),
      /** Owner's share of the payer's payments in whole percent, rounded down. */
      payer_share_percent: Type.Integer(),
    }),
  ),
});
export type AdminEarningsConcentration = Static<typeof AdminEarningsConcentrationSchema>;

export const EndWithdrawalSchema = body({
  /** `transfer` pays through the payment processor; `paid` records a payment by other means. */
  end: Type.Union([Type.Literal('paid'), Type.Literal('rejected'), Type.Literal('transfer')], {
    description: 'one of paid, rejected and transfer',
  }),
});

/** Links a provider to the account, which becomes its owner. */
export const LinkMachineSchema = body({ account_id: Type.String({ minLength: 1, maxLength: 64, description: 'the id of an account' }) });
