/** Database whose transactions fail at random: before they start, at any statement, before the commit, or after it. */
import { type CompiledQuery, sql, type Transaction } from 'kysely';
import type { Database, Tables } from '../../../src/database/tables.js';

/** Approximate number of statements per transaction. */
const STATEMENTS = 12;

export interface Faults {
  /** Number of failed transactions by the point of failure. */
  before: number;
  statement: number;
  within: number;
  after: number;
}

/** Makes about one transaction in `oneIn` fail at each point. The errors look like those of a lost server. */
export function faultyDatabase(
  database: Database,
  moments: readonly (keyof Faults)[],
  oneIn: number,
  random: () => number,
): { database: Database; faults: Faults } {
  const faults: Faults = { before: 0, statement: 0, within: 0, after: 0 };
  const chosen = (moment: keyof Faults, rarity = oneIn): boolean => {
    if (!moments.includes(moment) || random() * rarity >= 1) return false;
    faults[moment]++;
    return true;
  };
  const fails = (moment: 'before' | 'within' | 'after'): void => {
    if (!chosen(moment)) return;
    throw Object.assign(new Error(`made up, ${moment} the commit`), { code: moment === 'within' ? '40001' : '08006' });
  };
  // The server rejects the statement, so PostgreSQL aborts the rest of the transaction.
  const refuse = (inner: Transaction<Tables>): Promise<never> =>
    sql`select 1 from a_table_that_is_not`.execute(inner).then(
      () => Promise.reject(new Error('the statement was to fail')),
      () => Promise.reject(Object.assign(new Error('made up, at a statement'), { code: '40001' })),
    );
  const withFailingStatements = (inner: Transaction<Tables>): Transaction<Tables> =>
    bound(inner, 'executeQuery', (query: CompiledQuery) =>
      chosen('statement', STATEMENTS * oneIn) ? refuse(inner) : inner.executeQuery(query),
    );
  const transaction = () => ({
    execute: async <T>(work: (transaction: Transaction<Tables>) => Promise<T>): Promise<T> => {
      fails('before');
      const result = await database.transaction().execute(async (inner) => {
        const value = await work(withFailingStatements(inner));
        fails('within');
        return value;
      });
      fails('after');
      return result;
    },
  });
  return { database: bound(database, 'transaction', transaction), faults };
}

/** The same object, with one function replaced. */
function bound<T extends object>(target: T, replaced: string, by: unknown): T {
  return new Proxy(target, {
    get: (_target, name) => {
      if (name === replaced) return by;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
