/**
 * `hashedSessionTokens` is a plugin of better-auth, the sign-in library, that stores only the SHA-256 of session tokens. A reader of the
 * database cannot sign in with them.
 *
 * better-auth has no option for this, so the plugin replaces methods of the library's database adapter at start.
 */
import { createHash } from 'node:crypto';
import type { BetterAuthPlugin } from 'better-auth';
import type { DBAdapter, Where } from 'better-auth/adapters';

/** better-auth's names of the table and its column. */
const MODEL = 'session';
const FIELD = 'token';

function hashSessionToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

export function hashedSessionTokens(): BetterAuthPlugin {
  return { id: 'hashed-session-tokens', init: ({ adapter }) => hashTokensOf(adapter as DBAdapter) };
}

interface HashedWhere {
  readonly where: Where[];
  readonly tokenByHash: ReadonlyMap<string, string>;
}

function hashTokensOf(adapter: DBAdapter): void {
  const { create, findOne, findMany, count, update, updateMany, consumeOne, incrementOne } = adapter;
  const { delete: deleteOne, deleteMany } = adapter;
  const withHashes = <Query extends { model: string; where?: Where[] | undefined }>(query: Query): Query =>
    query.model === MODEL && query.where !== undefined ? { ...query, where: hashWhere(query.where).where } : query;
  /** {@link withToken}, for the session table. */
  const restoreToken = <Row>({ model, where }: { model: string; where?: Where[] | undefined }, row: Row): Row =>
    model === MODEL && where !== undefined ? withToken(row, hashWhere(where).tokenByHash) : row;

  adapter.create = async <T extends Record<string, unknown>, R = T>(query: Parameters<typeof create<T, R>>[0]): Promise<R> => {
    const { token } = query.data as { token?: unknown };
    if (query.model !== MODEL || typeof token !== 'string') return create<T, R>(query);
    const row = await create<T, R>({ ...query, data: { ...query.data, token: hashSessionToken(token) } });
    return { ...row, token };
  };
  adapter.findOne = async <T>(query: Parameters<typeof findOne>[0]) => restoreToken(query, await findOne<T>(withHashes(query)));
  adapter.findMany = async <T>(query: Parameters<typeof findMany>[0]) =>
    (await findMany<T>(withHashes(query))).map((row) => restoreToken(query, row));
  adapter.count = (query) => count(withHashes(query));
  adapter.update = async <T>(query: Parameters<typeof update>[0]) => {
    refuseNewToken(query);
    return restoreToken(query, await update<T>(withHashes(query)));
  };
  adapter.updateMany = (query) => {
    refuseNewToken(query);
    return updateMany(withHashes(query));
  };
  adapter.delete = (query) => deleteOne(withHashes(query));
  adapter.deleteMany = (query) => deleteMany(withHashes(query));
  adapter.consumeOne = async <T>(query: Parameters<typeof consumeOne>[0]) => restoreToken(query, await consumeOne<T>(withHashes(query)));
  adapter.incrementOne = async <T>(query: Parameters<typeof incrementOne>[0]) =>
    restoreToken(query, await incrementOne<T>(withHashes(query)));
}

function hashWhere(where: readonly Where[]): HashedWhere {
  const tokenByHash = new Map<string, string>();
  const hash = (value: unknown): string => {
    if (typeof value !== 'string') throw new TypeError('a session token must be a text');
    const stored = hashSessionToken(value);
    tokenByHash.set(stored, value);
    return stored;
  };
  const mapped = where.map((condition): Where => {
    if (condition.field !== FIELD) return condition;
    const { operator = 'eq', value } = condition;
    if (operator === 'eq') return { ...condition, value: hash(value) };
    if (operator === 'in' && Array.isArray(value)) return { ...condition, value: value.map(hash) };
    throw new TypeError(`session tokens cannot be compared with ${operator}`);
  });
  return { where: mapped, tokenByHash };
}

/** Puts the token back into a row that was queried by token. Other rows contain the hash, because the token is unknown. */
function withToken<Row>(row: Row, tokenByHash: ReadonlyMap<string, string>): Row {
  if (typeof row !== 'object' || row === null || !(FIELD in row) || typeof row[FIELD] !== 'string') return row;
  const token = tokenByHash.get(row[FIELD]);
  return token === undefined ? row : { ...row, token };
}

function refuseNewToken({ model, update }: { readonly model: string; readonly update: Record<string, unknown> }): void {
  if (model === MODEL && FIELD in update) throw new TypeError('the token of a session cannot be changed');
}
