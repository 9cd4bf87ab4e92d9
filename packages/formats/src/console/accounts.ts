/** Console API: who is signed in, what this coordinator offers, and API keys. */
import Type, { type Static } from 'typebox';
import { body, microUsd, name, page, time, timeOrNull } from './schema-parts.js';

/** `GET /console/v1/settings`: what a page must know before anyone has signed in. */
export const ConsoleSettingsSchema = Type.Object({
  development: Type.Boolean(),
  /** How money comes in. */
  deposits: Type.Array(Type.Union([Type.Literal('stripe'), Type.Literal('development')])),
  /** Whether the operator pays withdrawals through the processor. */
  payouts: Type.Boolean(),
  /** Whether passwords can be reset by mail. */
  mail: Type.Boolean(),
  /** Mail is not sent but written to the coordinator's log, as development mode does. */
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
});
export type ConsoleMe = Static<typeof ConsoleMeSchema>;

/** `GET /console/v1/session`: who is signed in, asked by a page that does not know yet. Signed out is no error. */
export const ConsoleSessionStateSchema = Type.Object({
  account: Type.Union([ConsoleMeSchema, Type.Null()]),
  /** Somebody is signed in whose account is suspended; `account` is null then. */
  suspended: Type.Boolean(),
});
export type ConsoleSessionState = Static<typeof ConsoleSessionStateSchema>;

/** A place where the account is signed in. */
export const ConsoleSessionSchema = Type.Object({
  id: Type.String(),
  /** The one that asks. */
  current: Type.Boolean(),
  created_at: time,
  expires_at: time,
  address: Type.Union([Type.String(), Type.Null()]),
  user_agent: Type.Union([Type.String(), Type.Null()]),
});
export type ConsoleSession = Static<typeof ConsoleSessionSchema>;
export const ConsoleSessionListSchema = Type.Object({ data: Type.Array(ConsoleSessionSchema) });
export type ConsoleSessionList = Static<typeof ConsoleSessionListSchema>;

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
  models: Type.Union([Type.Array(Type.String()), Type.Null()]),
  /** How streams carry their signatures; null: as the format does by itself. */
  signature_form: Type.Union([Type.Literal('event'), Type.Literal('comment'), Type.Null()]),
});
export type ConsoleKey = Static<typeof ConsoleKeySchema>;

export const ConsoleKeyPageSchema = page(ConsoleKeySchema);
export type ConsoleKeyPage = Static<typeof ConsoleKeyPageSchema>;

/** The answer to a new key. `secret` is shown this once. */
export const ConsoleNewKeySchema = Type.Object({ key: ConsoleKeySchema, secret: Type.String() });
export type ConsoleNewKey = Static<typeof ConsoleNewKeySchema>;

/** `POST /console/v1/playground-key`: a key for the page that asks, to be kept in its memory. `secret` is shown this once. */
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
const models = Type.Union([Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 100 }), Type.Null()], {
  description: 'an array of 1 to 100 model ids, or null for all',
});
const signatureForm = Type.Union([Type.Literal('event'), Type.Literal('comment'), Type.Null()], {
  description: '"event", "comment", or null for what the format does by itself',
});

export const CreateKeySchema = body({
  name,
  expires_at: Type.Optional(timeOrNull),
  spend_limit_micro_usd: Type.Optional(spendLimit),
  models: Type.Optional(models),
  signature_form: Type.Optional(signatureForm),
});
export type CreateKey = Static<typeof CreateKeySchema>;

/** What is left out stays as it is. */
export const UpdateKeySchema = body({
  name: Type.Optional(name),
  expires_at: Type.Optional(timeOrNull),
  spend_limit_micro_usd: Type.Optional(spendLimit),
  models: Type.Optional(models),
  signature_form: Type.Optional(signatureForm),
});
export type UpdateKey = Static<typeof UpdateKeySchema>;
