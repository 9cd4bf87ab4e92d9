/**
 * `StoredTable`: an entry of the data inventory, which has one per database table.
 *
 * The export of an account, its erasure and the tables in docs/data-protection.md all follow the entries. A test compares the
 * inventory with the real schema.
 */
import { type RawBuilder, sql } from 'kysely';

/** All columns of a table by kind. Each text is a list of column names, separated by spaces; each column is in one list. */
interface Columns {
  /** Columns that identify a person: names, addresses, serial numbers, texts that people write. */
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
  /** Columns that order the rows uniquely. The export reads page by page in this order. */
  readonly key: readonly string[];
  /** Values that the export adds to each row, by name. Example: the name behind an id. */
  readonly added?: Readonly<Record<string, RawBuilder<unknown>>>;
  /** Columns that the export sets to null except in `rows`, because in other rows they concern other people. None of `key`. */
  readonly restricted?: { readonly rows: RowsOf; readonly columns: readonly string[] };
}

export interface StoredTable {
  /** What a row is, and why rows are stored. Shown in the documentation and the export. */
  readonly about: string;
  readonly columns: Columns;
  /** How long rows are retained while the account exists. Text for the documentation; `applyRetention` enforces it. */
  readonly retention: string;
  /** Rows in the export of an account, or a text that says why none are exported. */
  readonly exported: ExportedRows | string;
  /** What remains after the account's deletion. Text for the documentation; `erasures` and `applyRetention` do it. */
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

/** Rows in which `column` is the provider id of a machine that is linked to the account. */
export function ofMachines(column: string): RowsOf {
  return (id) => sql<boolean>`${sql.ref(column)} in (${machinesOf(id)})`;
}

/** Rows in which `column` refers to an enrolment of a machine that is linked to the account. `target`: the referenced column. */
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
