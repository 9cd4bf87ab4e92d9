/**
 * `StoredTable`: entry of the data inventory, which describes the data of one database table.
 *
 * Account export, account erasure and docs/data-protection.md are all derived from the inventory. A test compares it with the schema.
 */
import { type RawBuilder, sql } from 'kysely';

/** All columns of a table by kind. Each value is a list of column names, separated by spaces. Each column is in one list. */
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
  /** Unique key of the table. The export reads pages in its order. */
  readonly key: readonly string[];
  /** SQL values that the export adds to each row, by name, such as the name behind an id. */
  readonly added?: Readonly<Record<string, RawBuilder<unknown>>>;
  /** Columns that may contain data of other people. The export sets them to null, except in `rows`. Must not be part of `key`. */
  readonly restricted?: { readonly rows: RowsOf; readonly columns: readonly string[] };
}

export interface StoredTable {
  /** Meaning of a row, and why it is stored. Printed in the documentation and the export. */
  readonly about: string;
  readonly columns: Columns;
  /** Retention while the account exists, as text for the documentation. `applyRetention` or the table's repository enforces it. */
  readonly retention: string;
  /** Rows in the export of an account, or the reason why none are exported. */
  readonly exported: ExportedRows | string;
  /** What happens at the account's deletion, as text for the documentation. `erasures` and `applyRetention` implement it. */
  readonly afterDeletion: string;
  /** Absent: the erasure does not change the table. */
  readonly erasures?: readonly Erasure[];
}

export const COLUMN_KINDS: readonly ColumnKind[] = ['identity', 'activity', 'others', 'secret', 'technical'];

export function columnsOf({ columns }: StoredTable, kind: ColumnKind): string[] {
  return (columns[kind] ?? '').split(' ').filter((name) => name !== '');
}

/** Condition: `column` is the account's id. */
export function ofAccount(column: string): RowsOf {
  return (id) => sql<boolean>`${sql.ref(column)} = ${id}`;
}

/** Condition: `column` is the id of a provider that is linked to the account. */
export function ofMachines(column: string): RowsOf {
  return (id) => sql<boolean>`${sql.ref(column)} in (${machinesOf(id)})`;
}

/** Condition: `column` refers to the enrolment of a provider that is linked to the account. `target`: the referenced column. */
export function ofEnrolments(column: string, target: 'id' | 'se_key_sha256'): RowsOf {
  return (id) =>
    sql<boolean>`${sql.ref(column)} in (select ${sql.ref(target)} from device_enrolments where provider_id in (${machinesOf(id)}))`;
}

/** SQL query of the ids of providers that are linked to the account. */
export function machinesOf(id: string): RawBuilder<unknown> {
  return sql`select provider_id from provider_owners where account_id = ${id}`;
}

/** Condition: `column` is the account's confirmed e-mail address. An unconfirmed address may belong to somebody else. */
export function ofEmail(column: string): RowsOf {
  return (id) => sql<boolean>`${sql.ref(column)} = (select email from auth_users where id = ${id} and email_verified)`;
}
