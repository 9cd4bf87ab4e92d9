/**
 * Types of the data inventory: what every table stores, why, for how long, and what an export and the deletion of an account do with it.
 *
 * One entry per table drives all of them, and the table in docs/data-protection.md, which a test compares with the real schema.
 */
import { type RawBuilder, sql } from 'kysely';

/** Names of columns, separated by spaces. Every column is in exactly one list. */
interface Columns {
  /** Says who or where somebody is: names, addresses, serial numbers, texts that people write. */
  readonly identity?: string;
  /** Random ids, times, amounts and settings of one account or machine. Pseudonymous once the identities are erased. */
  readonly activity?: string;
  /** Ids of other accounts. In no export. */
  readonly others?: string;
  /** Hashes, keys and encrypted secrets. In no export. */
  readonly secret?: string;
  /** About no person. */
  readonly technical?: string;
}

export type ColumnKind = keyof Columns;

/** Condition for the rows of one account. */
export type RowsOf = (accountId: string) => RawBuilder<boolean>;

/** Part of the deletion of an account: removes the rows, or overwrites columns. */
export interface Erasure {
  readonly rows: RowsOf;
  /** Absent: the rows are removed. */
  readonly set?: Readonly<Record<string, string | null>>;
}

export interface ExportedRows {
  readonly rows: RowsOf;
  /** Columns of a unique order, by which the export reads page by page. */
  readonly key: readonly string[];
  /** Further values, such as the name behind an id. */
  readonly also?: Readonly<Record<string, RawBuilder<unknown>>>;
  /** Columns that are null in rows beyond `of`, because they are about others there. None of `key`. */
  readonly only?: { readonly of: RowsOf; readonly columns: readonly string[] };
}

export interface StoredTable {
  /** What the rows are, and why they are stored. */
  readonly about: string;
  readonly columns: Columns;
  /** How long rows are retained while the account exists. */
  readonly retention: string;
  /** Rows in the export of an account. A text: why there are none. */
  readonly exported: ExportedRows | string;
  /** What the deletion of an account does, in words. */
  readonly afterDeletion: string;
  readonly erasures?: readonly Erasure[];
}

export const COLUMN_KINDS: readonly ColumnKind[] = ['identity', 'activity', 'others', 'secret', 'technical'];

/** Columns of one kind. */
export function columnsOf({ columns }: StoredTable, kind: ColumnKind): string[] {
  return (columns[kind] ?? '').split(' ').filter((name) => name !== '');
}

/** Rows whose column is the id of the account. */
export function ofAccount(column: string): RowsOf {
  return (id) => sql<boolean>`${sql.ref(column)} = ${id}`;
}

/** Rows whose column is the id of a machine that is linked to the account. */
export function ofMachines(column: string): RowsOf {
  return (id) => sql<boolean>`${sql.ref(column)} in (${machinesOf(id)})`;
}

/** Rows of device-management enrolments of machines that are linked to the account. */
export function ofEnrolments(column: string, of: 'id' | 'se_key_sha256'): RowsOf {
  return (id) =>
    sql<boolean>`${sql.ref(column)} in (select ${sql.ref(of)} from device_enrolments where provider_id in (${machinesOf(id)}))`;
}

export function machinesOf(id: string): RawBuilder<unknown> {
  return sql`select provider_id from provider_owners where account_id = ${id}`;
}

/** Rows whose column is the e-mail address of the account's user. An unconfirmed address may be somebody else's, and has no rows. */
export function ofEmail(column: string): RowsOf {
  return (id) => sql<boolean>`${sql.ref(column)} = (select email from auth_users where id = ${id} and email_verified)`;
}
