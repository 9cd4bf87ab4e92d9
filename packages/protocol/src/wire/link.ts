/**
 * How a machine shows which account it earns for: over its own session, where it has proved its key. A machine without an
 * account is served all the same; what it earns is kept for whoever links it.
 */
import Type, { type Static } from 'typebox';

/** From a provider: my owner gave me this machine token. Sent after registration, and whenever the owner gives another one. */
export const LinkSchema = Type.Object({ type: Type.Literal('link'), token: Type.String({ pattern: '^[A-Za-z0-9._~-]{16,256}$' }) });

/** To a provider: you earn for this account. */
export const LinkedSchema = Type.Object({
  type: Type.Literal('linked'),
  account_id: Type.String({ minLength: 1, maxLength: 256 }),
  /** As the account calls itself. For its owner's eyes only. */
  account_name: Type.String({ maxLength: 256 }),
});

/** Why a token links nothing. A newer coordinator may know more. */
export const LINK_REFUSALS = [
  /** It is unknown, or was revoked. Also sent by itself when the owner unlinks a machine that is connected. */
  'token_revoked',
  /** It is that of another machine. */
  'other_machine',
  /** The machine earns for another account, which has to let go of it first. */
  'other_account',
  'account_suspended',
  /** The coordinator cannot say now. */
  'try_later',
] as const;
export type LinkRefusal = (typeof LINK_REFUSALS)[number];

export const LinkRefusedSchema = Type.Object({
  type: Type.Literal('link_refused'),
  reason: Type.String({ pattern: '^[a-z0-9_]{1,64}$' }),
  /** What the owner can do. */
  remedy: Type.String({ maxLength: 512 }),
});
export type LinkRefused = Static<typeof LinkRefusedSchema>;
