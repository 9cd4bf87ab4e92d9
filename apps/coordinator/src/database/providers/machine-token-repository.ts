/**
 * Machine tokens: credentials by which an agent links its provider to an account. Only hashes are stored.
 *
 * The first provider that links itself with a token is bound to it. The token is then refused from other providers.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Database } from '../tables.js';

const TOKEN_PATTERN = /^machine-[A-Za-z0-9_-]{43}$/;

interface MachineToken {
  readonly accountId: string;
  readonly machineName: string;
  /** Provider that the token is bound to; null: none yet. */
  readonly providerId: string | null;
}

/** `suspended`: the account is suspended. `void`: unknown, revoked, or of a closed account. */
type TokenState = ({ readonly kind: 'good' } & MachineToken) | { readonly kind: 'suspended' } | { readonly kind: 'void' };

export function newMachineToken(): string {
  return `machine-${randomBytes(32).toString('base64url')}`;
}

/** Whether a text has the form of a token. Checked before the text is hashed and looked up. */
function looksLikeMachineToken(text: string): boolean {
  return TOKEN_PATTERN.test(text);
}

export function hashMachineToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

export async function addMachineToken(
  database: Database,
  token: { readonly hash: string; readonly accountId: string; readonly machineName: string; readonly now: number },
): Promise<void> {
  await database
    .insertInto('machine_tokens')
    .values({
      hash: token.hash,
      account_id: token.accountId,
      machine_name: token.machineName,
      provider_id: null,
      created_at: token.now,
      bound_at: null,
      revoked_at: null,
    })
    .execute();
}

export async function readMachineToken(database: Database, token: string): Promise<TokenState> {
  if (!looksLikeMachineToken(token)) return { kind: 'void' };
  const row = await database
    .selectFrom('machine_tokens')
    .innerJoin('accounts', 'accounts.id', 'machine_tokens.account_id')
    .select(['account_id', 'machine_name', 'provider_id', 'revoked_at', 'suspended_at', 'deleted_at'])
    .where('hash', '=', hashMachineToken(token))
    .executeTakeFirst();
  if (row === undefined || row.revoked_at !== null || row.deleted_at !== null) return { kind: 'void' };
  if (row.suspended_at !== null) return { kind: 'suspended' };
  return { kind: 'good', accountId: row.account_id, machineName: row.machine_name, providerId: row.provider_id };
}

/**
 * Binds a token to a provider, and revokes the provider's other tokens. Call in the transaction that links the provider.
 *
 * @returns False if the token is revoked, or bound to another provider.
 */
export async function bindMachineToken(
  transaction: Database,
  { token, providerId, now }: { readonly token: string; readonly providerId: string; readonly now: number },
): Promise<boolean> {
  const hash = hashMachineToken(token);
  const { numUpdatedRows } = await transaction
    .updateTable('machine_tokens')
    .set((set) => ({ provider_id: providerId, bound_at: set.fn.coalesce('bound_at', set.val(now)) }))
    .where('hash', '=', hash)
    .where('revoked_at', 'is', null)
    .where((where) => where.or([where('provider_id', 'is', null), where('provider_id', '=', providerId)]))
    .executeTakeFirst();
  if (numUpdatedRows !== 1n) return false;
  await revoke(transaction, now, (tokens) => tokens.where('provider_id', '=', providerId).where('hash', '!=', hash));
  return true;
}

/** Revokes one token. Returns its account and provider; null if no valid token matches. */
export async function revokeMachineToken(
  transaction: Database,
  token: string,
  now: number,
): Promise<{ readonly accountId: string; readonly providerId: string | null } | null> {
  if (!looksLikeMachineToken(token)) return null;
  const row = await transaction
    .updateTable('machine_tokens')
    .set({ revoked_at: now })
    .where('hash', '=', hashMachineToken(token))
    .where('revoked_at', 'is', null)
    .returning(['account_id', 'provider_id'])
    .executeTakeFirst();
  return row === undefined ? null : { accountId: row.account_id, providerId: row.provider_id };
}

export async function revokeTokensOfProvider(
  transaction: Database,
  { accountId, providerId, at }: { readonly accountId: string; readonly providerId: string; readonly at: number },
): Promise<void> {
  await revoke(transaction, at, (tokens) => tokens.where('provider_id', '=', providerId).where('account_id', '=', accountId));
}

export async function revokeTokensOfAccount(transaction: Database, accountId: string, now: number): Promise<void> {
  await revoke(transaction, now, (tokens) => tokens.where('account_id', '=', accountId));
}

/** Revokes a token that no provider has presented yet. */
export async function revokeUnboundToken(database: Database, hash: string, now: number): Promise<void> {
  await revoke(database, now, (tokens) => tokens.where('hash', '=', hash).where('provider_id', 'is', null));
}

type Selection = ReturnType<typeof validTokens>;

function validTokens(database: Database, now: number) {
  return database.updateTable('machine_tokens').set({ revoked_at: now }).where('revoked_at', 'is', null);
}

async function revoke(database: Database, now: number, which: (tokens: Selection) => Selection): Promise<void> {
  await which(validTokens(database, now)).execute();
}
