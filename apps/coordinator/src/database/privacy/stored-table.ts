/**
 * `StoredTable`: an entry of the data inventory. Each database table has an entry.
 *
 * The export of an account, its erasure and the tables in docs/data-protection.md all follow the entries. A test compares the
 * inventory with the real schema.
 */
import { type RawBuilder, sql } from 'kysely';

/** All columns of a table by kind. Each text is a list of column names, separated by spaces; each column is in one list. */
interface Columns {
  /** Columns that identify a person: names, addresses, serial numbers, free texts. */
  readonly identity?: string;
  /** Random ids, times, amounts and settings of one account or machine. Pseudonymous once `identity` columns are erased. */
  readonly activity?: string;
  /** Ids of other accounts. Never exported. */
  readonly others?: string;
  /** Hashes, keys and encrypted secrets. Never exported. */
  readonly secret?: string;
  /** Columns that concern no person. */
  readonly technical?: string;
}

export type ColumnKind = keyof Columns;

/** SQL condition that selects the rows of one account. */
export type RowsOf = (accountId: string) => RawBuilder<boolean>;

/** Step in the erasure of an account: removes rows of a table, or overwrites some of their columns. */
export interface Erasure {
  readonly rows: RowsOf;
  /** New values by column. Absent: the rows are removed. */
  readonly set?: Readonly<Record<string, string | null>>;
}

export interface ExportedRows {
  readonly rows: RowsOf;
  /** Columns with a unique order of the rows. The export reads page by page in this order. */
  readonly key: readonly string[];
  /** Values that the export adds to each row, by name. Example: the name behind an id. */
  readonly added?: Readonly<Record<string, RawBuilder<unknown>>>;
  /** Columns with data of other people, which the export sets to null except in `rows`. Columns of `key` are never set to null. */
  readonly restricted?: { readonly rows: RowsOf; readonly columns: readonly string[] };
}

export interface StoredTable {
  /** Meaning of a row, and the reason for storing rows. Shown in the documentation and the export. */
  readonly about: string;
  readonly columns: Columns;
  /** Retention while the account exists. Text for the documentation; `applyRetention` enforces the retention. */
  readonly retention: string;
  /** Rows in the export of an account, or a text that says why none are exported. */
  readonly exported: ExportedRows | string;
  /** Data that remain after the account's deletion. Text for the documentation; `erasures` and `applyRetention` implement the deletion. */
  readonly afterDeletion: string;
  /** Absent: the erasure leaves the table alone. */
  readonly erasures?: readonly Erasure[];
}

export const COLUMN_KINDS: readonly ColumnKind[] = ['identity', 'activity', 'others', 'secret', 'technical'];

export function columnsOf({ columns }: StoredTable, kind: ColumnKind): string[] {
  return (columns[kind] ?? '').split(' ').filter((name) => name !== '');
}

/** Rows in which `column` is the account's id. */
export function ofAccount(column: string): RowsOf {
  return (id) => sql<boolean>`${sql.ref(column)} = ${id}`;
}

/** Rows whose `column` is the provider id of a machine linked to the account. */
export function ofMachines(column: string): RowsOf {
  return (id) => sql<boolean>`${sql.ref(column)} in (${machinesOf(id)})`;
}

/** Rows whose `column` refers to an enrolment of a machine linked to the account. `target`: the referenced column. */
export function ofEnrolments(column: string, target: 'id' | 'se_key_sha256'): RowsOf {
  return (id) =>
    sql<boolean>`${sql.ref(column)} in (select ${sql.ref(target)} from device_enrolments where provider_id in (${machinesOf(id)}))`;
}

/** SQL query of the provider ids of machines that are linked to the account. */
export function machinesOf(id: string): RawBuilder<unknown> {
  return sql`select provider_id from provider_owners where account_id = ${id}`;
}

/** Rows in which `column` is the account's confirmed e-mail address. An unconfirmed address may belong to somebody else. */
export function ofEmail(column: string): RowsOf {
  return (id) => sql<boolean>`${sql.ref(column)} = (select email from auth_users where id = ${id} and email_verified)`;
}
