/** Compares two SQLite schemas, and lists changes that could break an older program on the newer schema. */
import { type Kysely, sql } from 'kysely';

interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly dflt_value: string | null;
  readonly pk: number;
}

interface Table {
  readonly columns: ReadonlyMap<string, Column>;
  /** Unique indexes by name. */
  readonly uniqueIndexes: ReadonlySet<string>;
  /** References to other tables, as JSON. */
  readonly references: ReadonlySet<string>;
}

export interface Schema {
  readonly tables: ReadonlyMap<string, Table>;
  readonly triggersAndViews: ReadonlyMap<string, string>;
}

export interface SchemaChanges {
  readonly added: { readonly writesRows: boolean };
  /** Changes that could break a running older program; one sentence each. */
  readonly breaking: readonly string[];
}

export async function readSchema(database: Kysely<unknown>): Promise<Schema> {
  const { rows } = await sql<{ name: string; type: string; sql: string }>`
    select name, type, sql from sqlite_master where type in ('table', 'trigger', 'view') and name not like 'sqlite_%'`.execute(database);
  const tables = new Map<string, Table>();
  for (const { name } of rows.filter(({ type }) => type === 'table')) {
    const [columns, indexes, references] = [
      await sql<Column>`select name, type, "notnull", dflt_value, pk from pragma_table_info(${name})`.execute(database),
      await sql<{ name: string }>`select name from pragma_index_list(${name}) where "unique" = 1`.execute(database),
      await sql<object>`select "table", "from", "to", on_delete from pragma_foreign_key_list(${name})`.execute(database),
    ];
    tables.set(name, {
      columns: new Map(columns.rows.map((column) => [column.name, column])),
      uniqueIndexes: new Set(indexes.rows.map((index) => index.name)),
      references: new Set(references.rows.map((reference) => JSON.stringify(reference))),
    });
  }
  const others = rows.filter(({ type }) => type !== 'table');
  return { tables, triggersAndViews: new Map(others.map((other) => [`${other.type} ${other.name}`, other.sql])) };
}

/** Adds a dummy row to each table, so that data migrations have rows to change. Satisfies only key constraints. */
export async function addRows(database: Kysely<unknown>, { tables }: Schema): Promise<void> {
  for (const pragma of ['foreign_keys = off', 'ignore_check_constraints = on']) await sql.raw(`pragma ${pragma}`).execute(database);
  for (const [table, { columns }] of tables) {
    const values = [...columns.values()].map(({ type }) => (/int|double|real/i.test(type) ? 1 : 'x'));
    const names = [...columns.keys()].map((name) => sql.ref(name));
    await sql`insert or ignore into ${sql.table(table)} (${sql.join(names)}) values (${sql.join(values)})`.execute(database);
  }
}

/** `statements`: SQL of the migration, which may write rows of added tables, and added columns of other tables. */
export function changesOf(before: Schema, after: Schema, statements: readonly string[]): SchemaChanges {
  const breaking: string[] = [];
  for (const [table, old] of before.tables) {
    const now = after.tables.get(table);
    if (now === undefined) breaking.push(`table ${table} is gone`);
    else breaking.push(...tableChanges(table, old, now));
  }
  for (const [name, text] of new Map([...before.triggersAndViews, ...after.triggersAndViews])) {
    if (before.triggersAndViews.get(name) !== after.triggersAndViews.get(name)) breaking.push(`${name} changed: ${text}`);
  }
  const writes = statements.map(writeOf).filter((write) => write !== null);
  for (const { table, columns } of writes) {
    const old = before.tables.get(table);
    const isAdded = columns?.every((column) => old?.columns.has(column) === false) === true;
    // Rows of `ledger_marks` have a name, and programs ignore unknown names.
    if (old !== undefined && !isAdded && table !== 'ledger_marks') breaking.push(`writes ${table}, which older programs use`);
  }
  return { added: { writesRows: writes.length > 0 }, breaking };
}

function tableChanges(table: string, old: Table, now: Table): string[] {
  const problems: string[] = [];
  for (const [name, column] of old.columns) {
    const same = now.columns.get(name);
    if (same === undefined) problems.push(`column ${table}.${name} is gone`);
    else if (JSON.stringify(same) !== JSON.stringify(column)) problems.push(`column ${table}.${name} changed`);
  }
  for (const [name, { notnull, dflt_value: standard }] of now.columns) {
    if (!old.columns.has(name) && notnull === 1 && standard === null) problems.push(`column ${table}.${name} needs a value`);
  }
  for (const index of now.uniqueIndexes) if (!old.uniqueIndexes.has(index)) problems.push(`unique index ${index} on ${table}`);
  for (const reference of now.references) {
    const { from } = JSON.parse(reference) as { from: string };
    if (!old.references.has(reference) && old.columns.has(from)) problems.push(`${table}.${from} got a reference`);
  }
  return problems;
}

interface Write {
  readonly table: string;
  /** Columns of an update; null if whole rows are written or deleted. */
  readonly columns: readonly string[] | null;
}

/** Table and columns that a statement writes; null if the statement writes no rows. */
function writeOf(statement: string): Write | null {
  const [, verb = '', table = '', rest = ''] = /^\s*(insert into|update|delete from)\s+"?(\w+)"?([\s\S]*)$/i.exec(statement) ?? [];
  if (table === '') return null;
  if (verb.toLowerCase() !== 'update') return { table, columns: null };
  const columns = [...rest.replace(/\bwhere\b[\s\S]*$/i, '').matchAll(/"?(\w+)"?\s*=(?!=)/g)].map((match) => match[1] ?? '');
  return { table, columns };
}
