/**
 * Messages that link a provider to its owner's account.
 *
 * The session has already proved the provider's enclave key. Earnings from before the link are credited to the account.
 */
import Type, { type Static } from 'typebox';

/** Provider → coordinator: the owner's machine token. Sent after registration and whenever the agent gets a new token. */
export const LinkSchema = Type.Object({ type: Type.Literal('link'), token: Type.String({ pattern: '^[A-Za-z0-9._~-]{16,256}$' }) });

/** Coordinator → provider: the account that the machine earns for. */
export const LinkedSchema = Type.Object({
  type: Type.Literal('linked'),
  account_id: Type.String({ minLength: 1, maxLength: 256 }),
  /** Name of the account, shown to the owner only. */
  account_name: Type.String({ maxLength: 256 }),
});

/** Reasons for refusing a token. Providers accept unknown codes, because newer coordinators may add some. */
const LINK_REFUSALS = [
  /** The token is unknown or revoked. Also sent when the owner unlinks a connected machine. */
  'token_revoked',
  /** The token belongs to another machine. */
  'other_machine',
  /** The machine earns for another account, which must unlink the machine first. */
  'other_account',
  'account_suspended',
  /** The coordinator could not check the token. */
  'try_later',
] as const;
export type LinkRefusal = (typeof LINK_REFUSALS)[number];

/** Coordinator → provider: the token was refused, or the owner ended the link. `reason`: a {@link LinkRefusal} or a newer code. */
export const LinkRefusedSchema = Type.Object({
  type: Type.Literal('link_refused'),
  reason: Type.String({ pattern: '^[a-z0-9_]{1,64}$' }),
  /** Remedy for the owner, one or two sentences. */
  remedy: Type.String({ maxLength: 512 }),
});
export type LinkRefused = Static<typeof LinkRefusedSchema>;
