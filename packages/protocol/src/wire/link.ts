/** Linking a provider to an account, over the session that proved its key. Earnings before are stored for the account. */
import Type, { type Static } from 'typebox';

/** Provider → coordinator: machine token from the owner. Sent after registration and on every new token. */
export const LinkSchema = Type.Object({ type: Type.Literal('link'), token: Type.String({ pattern: '^[A-Za-z0-9._~-]{16,256}$' }) });

/** Coordinator → provider: the account that the machine earns for. */
export const LinkedSchema = Type.Object({
  type: Type.Literal('linked'),
  account_id: Type.String({ minLength: 1, maxLength: 256 }),
  /** Name of the account, shown to the owner only. */
  account_name: Type.String({ maxLength: 256 }),
});

/** Why a token links nothing. A newer coordinator may know more. */
const LINK_REFUSALS = [
  /** Unknown or revoked token. Also sent unprompted when the owner unlinks a connected machine. */
  'token_revoked',
  /** The token belongs to another machine. */
  'other_machine',
  /** The machine earns for another account, which must unlink the machine first. */
  'other_account',
  'account_suspended',
  /** The coordinator cannot say now. */
  'try_later',
] as const;
export type LinkRefusal = (typeof LINK_REFUSALS)[number];

export const LinkRefusedSchema = Type.Object({
  type: Type.Literal('link_refused'),
  reason: Type.String({ pattern: '^[a-z0-9_]{1,64}$' }),
  /** Remedy for the owner. */
  remedy: Type.String({ maxLength: 512 }),
});
export type LinkRefused = Static<typeof LinkRefusedSchema>;
