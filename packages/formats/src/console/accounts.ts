/** Console API schemas: the signed-in account, its sessions, two-factor sign-in, passkeys, API keys and export, and public settings. */
import Type, { type Static } from 'typebox';
import { ConsoleMembershipSchema } from './organisations.js';
import { microUsd, name, nullable, page, requestBody, time, timeOrNull } from './schema-parts.js';

/** `GET /console/v1/settings`: settings that pages need before sign-in. */
export const ConsoleSettingsSchema = Type.Object({
  development: Type.Boolean(),
  /** Available payment methods for deposits. */
  deposits: Type.Array(Type.Union([Type.Literal('stripe'), Type.Literal('development')])),
  /** Whether withdrawals are paid through the payment processor. */
  payouts: Type.Boolean(),
  /** Whether mail works, which password resets need. True also if `mail_in_log`. */
  mail: Type.Boolean(),
  /** Whether mail is written to the coordinator's log instead of sent (development mode). */
  mail_in_log: Type.Boolean(),
  email_verification_required: Type.Boolean(),
  min_password_length: Type.Integer(),
  min_deposit_micro_usd: microUsd,
  min_withdrawal_micro_usd: microUsd,
});
export type ConsoleSettings = Static<typeof ConsoleSettingsSchema>;

/** `GET /console/v1/me`. */
export const ConsoleMeSchema = Type.Object({
  id: Type.String(),
  name: Type.String(),
  email: Type.String(),
  email_verified: Type.Boolean(),
  created_at: time,
  is_admin: Type.Boolean(),
  /** Organisations of which the person is a member, sorted by name. */
  organisations: Type.Array(ConsoleMembershipSchema),
});
export type ConsoleMe = Static<typeof ConsoleMeSchema>;

/** `GET /console/v1/session`: the signed-in account; null if signed out, which is not an error. */
export const ConsoleSessionStateSchema = Type.Object({
  account: Type.Union([ConsoleMeSchema, Type.Null()]),
  /** Whether the signed-in account is suspended. If so, `account` is null. */
  suspended: Type.Boolean(),
});
export type ConsoleSessionState = Static<typeof ConsoleSessionStateSchema>;

/** One session of the signed-in account, usually one browser. */
export const ConsoleSessionSchema = Type.Object({
  id: Type.String(),
  /** Whether the request used this session. */
  current: Type.Boolean(),
  created_at: time,
  expires_at: time,
  address: Type.Union([Type.String(), Type.Null()]),
  user_agent: Type.Union([Type.String(), Type.Null()]),
});
export type ConsoleSession = Static<typeof ConsoleSessionSchema>;
export const ConsoleSessionListSchema = Type.Object({ data: Type.Array(ConsoleSessionSchema) });
export type ConsoleSessionList = Static<typeof ConsoleSessionListSchema>;

const budgetPeriod = Type.Union([Type.Literal('day'), Type.Literal('week'), Type.Literal('month')], {
  description: '"day", "week" or "month": a calendar period in UTC, weeks from Monday',
});
export type BudgetPeriod = Static<typeof budgetPeriod>;

/** `GET /console/v1/two-factor`. */
export const ConsoleTwoFactorSchema = Type.Object({
  enabled: Type.Boolean(),
  /** Unused backup codes; 0 if not enabled. */
  backup_codes_left: Type.Integer(),
});
export type ConsoleTwoFactor = Static<typeof ConsoleTwoFactorSchema>;

export const ConsolePasskeySchema = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** Whether the passkey is synced between devices. */
  synced: Type.Boolean(),
  created_at: timeOrNull,
  last_used_at: timeOrNull,
});
export type ConsolePasskey = Static<typeof ConsolePasskeySchema>;
export const ConsolePasskeyListSchema = Type.Object({ data: Type.Array(ConsolePasskeySchema) });
export type ConsolePasskeyList = Static<typeof ConsolePasskeyListSchema>;
export const UpdatePasskeySchema = requestBody({ name });

export const ConsoleKeySchema = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** The first characters of the key. */
  prefix: Type.String(),
  state: Type.Union([Type.Literal('active'), Type.Literal('expired'), Type.Literal('revoked')]),
  created_at: time,
  last_used_at: timeOrNull,
  expires_at: timeOrNull,
  revoked_at: timeOrNull,
  spend_limit_micro_usd: Type.Union([microUsd, Type.Null()]),
  spent_micro_usd: microUsd,
  /** Maximum spending per calendar period (UTC). All `budget_…` members are null without a budget. */
  budget_micro_usd: Type.Union([microUsd, Type.Null()]),
  budget_period: nullable(budgetPeriod),
  /** Spending in the current period. */
  budget_spent_micro_usd: Type.Union([microUsd, Type.Null()]),
  /** Start of the next period. */
  budget_resets_at: timeOrNull,
  models: Type.Union([Type.Array(Type.String()), Type.Null()]),
  /** Form of stream signatures; null: the format's default. */
  signature_form: Type.Union([Type.Literal('event'), Type.Literal('comment'), Type.Null()]),
  /** Person who created the key; null if unknown, or if that person's account was deleted. */
  created_by: nullable(Type.Object({ user_id: Type.String(), name: Type.String() })),
});
export type ConsoleKey = Static<typeof ConsoleKeySchema>;

export const ConsoleKeyPageSchema = page(ConsoleKeySchema);
export type ConsoleKeyPage = Static<typeof ConsoleKeyPageSchema>;

/** Response for a new key. `secret` is returned only once. */
export const ConsoleNewKeySchema = Type.Object({ key: ConsoleKeySchema, secret: Type.String() });
export type ConsoleNewKey = Static<typeof ConsoleNewKeySchema>;

/** `POST /console/v1/playground-key`: a short-lived key, which the page stores only in memory. */
export const ConsolePlaygroundKeySchema = Type.Object({
  id: Type.String(),
  secret: Type.String(),
  expires_at: time,
  spend_limit_micro_usd: microUsd,
});
export type ConsolePlaygroundKey = Static<typeof ConsolePlaygroundKeySchema>;

const spendLimit = Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()], {
  description: 'a whole number of micro-USD of at least 1, or null for no limit',
});
const budget = Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()], {
  description: 'a whole number of micro-USD of at least 1, or null for no budget',
});
const models = Type.Union([Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 100 }), Type.Null()], {
  description: 'an array of 1 to 100 model ids, or null for all',
});
const signatureForm = Type.Union([Type.Literal('event'), Type.Literal('comment'), Type.Null()], {
  description: '"event", "comment", or null for the default of the format',
});

const keySettings = {
  expires_at: Type.Optional(timeOrNull),
  spend_limit_micro_usd: Type.Optional(spendLimit),
  budget_micro_usd: Type.Optional(budget),
  /** Sent with `budget_micro_usd`. Default: month. */
  budget_period: Type.Optional(budgetPeriod),
  models: Type.Optional(models),
  signature_form: Type.Optional(signatureForm),
};

export const CreateKeySchema = requestBody({ name, ...keySettings });
export type CreateKey = Static<typeof CreateKeySchema>;

/** Absent members remain unchanged. */
export const UpdateKeySchema = requestBody({ name: Type.Optional(name), ...keySettings });
export type UpdateKey = Static<typeof UpdateKeySchema>;

/** `POST /console/v1/account/export`. The user must re-enter the password. */
export const RequestAccountExportSchema = requestBody({ password: Type.String({ minLength: 1, maxLength: 128 }) });

/** Download path of the account's data. Works only in the session that requested the export. */
export const ConsoleAccountExportSchema = Type.Object({ path: Type.String(), expires_at: time });
export type ConsoleAccountExport = Static<typeof ConsoleAccountExportSchema>;
