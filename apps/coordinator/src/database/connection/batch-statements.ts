/**
 * Writes many rows, or reads the rows of many ids, with few statements. Compiled SQL is cached, because compiling costs more than executing.
 *
 * Rows are divided into batches of powers of two, so that few texts are cached. The statements of a call run one after the other:
 * concurrent ones could run after a rollback, outside the transaction.
 */
import { type Compilable, CompiledQuery, type InsertQueryBuilder, type InsertResult, type Kysely, sql } from 'kysely';
import type { Database, Tables } from '../tables.js';

/** Maximum rows or ids per statement. Even 28 columns stay far below SQLite's maximum of 32,766 parameters. */
const MAX_PER_STATEMENT = 256;

type Columns<T extends keyof Tables> = keyof Tables[T] & string;
// The type parameters of `write` check the rows. Inside this file, tables are only names.
type AnyTables = Record<string, Record<string, unknown>>;
type AnyInsert = InsertQueryBuilder<AnyTables, string, InsertResult>;

interface RowWriter<Row> {
  /** Writes the rows in order. Resolves to the rows that the statement returns; none without a `returning` clause. */
  write(database: Database, rows: readonly Row[]): Promise<unknown[]>;
}

/** Appends the values of a record to the statement's parameters, in the order of the columns. */
type Bind<Row> = (row: Row, parameters: unknown[]) => void;

/** Creates a writer that inserts rows with these columns. `finish` may add clauses without parameters, such as `on conflict`. */
export function rowWriter<T extends keyof Tables & string, Column extends Columns<T>>(
  table: T,
  columns: readonly Column[],
  finish: (insert: AnyInsert) => Compilable = (insert) => insert,
): RowWriter<{ readonly [C in Column]: unknown } & object> {
  return recordWriter(
    table,
    columns,
    (row: { readonly [C in Column]: unknown }, parameters) => {
      for (const column of columns) parameters.push(row[column]);
    },
    finish,
  );
}

/** Like {@link rowWriter}, for records whose members are not named like the columns. Avoids an intermediate object per row. */
export function recordWriter<T extends keyof Tables & string, Row>(
  table: T,
  columns: readonly Columns<T>[],
  bind: Bind<Row>,
  finish: (insert: AnyInsert) => Compilable = (insert) => insert,
): RowWriter<Row> {
  const placeholder = Object.fromEntries(columns.map((column) => [column, 0]));
  return statementWriter(bind, (database, size) => {
    const insert = (database as unknown as Kysely<AnyTables>)
      .insertInto<string>(table)
      .values(Array.from({ length: size }, () => placeholder));
    return finish(insert).compile().sql;
  });
}

/** Creates a writer that updates rows by key. The first column is the key. PostgreSQL cannot infer the types of columns in `values`. */
export function recordUpdater<T extends keyof Tables & string, Row>(
  table: T,
  [key, ...columns]: readonly (readonly [column: Columns<T>, type: 'text' | 'bigint'])[],
  bind: Bind<Row>,
): RowWriter<Row> {
  if (key === undefined) throw new Error('an update needs a key');
  return statementWriter(bind, (database, size) => {
    // Both databases name the columns of `values` lists `column1`, `column2` and so on.
    const set = columns.map(([column], index) => sql`${sql.ref(column)} = ${sql.ref(`new.column${index + 2}`)}`);
    const typed = sql.join([key, ...columns].map(([, type]) => sql`cast(${0} as ${sql.raw(type)})`));
    const plain = sql.join([key, ...columns].map(() => sql`${0}`));
    const values = Array.from({ length: size }, (_, index) => sql`(${index === 0 ? typed : plain})`);
    return sql`update ${sql.table(table)} set ${sql.join(set)} from (values ${sql.join(values)}) as ${sql.ref('new')}
      where ${sql.ref(`${table}.${key[0]}`)} = ${sql.ref('new.column1')}`.compile(database).sql;
  });
}

/** Creates a writer from any statement. `compile` returns the SQL for `size` rows. `bind` appends the parameters of a row. */
export function statementWriter<Row>(bind: Bind<Row>, compile: (database: Database, size: number) => string): RowWriter<Row> {
  const texts = new Map<number, string>();
  const textFor = (database: Database, size: number): string => {
    let text = texts.get(size);
    if (text === undefined) {
      text = compile(database, size);
      texts.set(size, text);
    }
    return text;
  };
  return {
    async write(database, rows) {
      const returned: unknown[] = [];
      for (let start = 0; start < rows.length; ) {
        const size = batchSizeFor(rows.length - start);
        const parameters: unknown[] = [];
        for (let index = start; index < start + size; index++) bind(rows[index] as Row, parameters);
        const { rows: piece } = await database.executeQuery(CompiledQuery.raw(textFor(database, size), parameters));
        for (const row of piece) returned.push(row);
        start += size;
      }
      return returned;
    },
  };
}

/** `set column = table.column + excluded.column` for each count. */
export function addOnConflict(table: string, keys: readonly string[], counts: readonly string[]): (insert: AnyInsert) => AnyInsert {
  return (insert) =>
    insert.onConflict((conflict) =>
      conflict
        .columns([...keys])
        .doUpdateSet((set) =>
          Object.fromEntries(counts.map((column) => [column, set(set.ref(`${table}.${column}`), '+', set.ref(`excluded.${column}`))])),
        ),
    );
}

export function replaceOnConflict(keys: readonly string[], columns: readonly string[]): (insert: AnyInsert) => AnyInsert {
  return (insert) =>
    insert.onConflict((conflict) =>
      conflict
        .columns([...keys])
        .doUpdateSet((set) => Object.fromEntries(columns.map((column) => [column, set.ref(`excluded.${column}`)]))),
    );
}

/** Query whose only parameters are a list of ids. Runs once per {@link MAX_PER_STATEMENT} ids; only rows of one run are ordered. */
export class IdQuery<Row> {
  readonly #build: (database: Database, ids: readonly string[]) => { compile(): CompiledQuery<Row> };
  readonly #texts = new Map<number, string>();

  constructor(build: (database: Database, ids: readonly string[]) => { compile(): CompiledQuery<Row> }) {
    this.#build = build;
  }

  /** Runs the query with ids in ascending order, so that row locks are taken in a fixed order. */
  async read(database: Database, ids: Iterable<string>): Promise<Row[]> {
    const sorted = [...new Set(ids)].sort();
    const rows: Row[] = [];
    for (let start = 0; start < sorted.length; start += MAX_PER_STATEMENT) {
      const piece = sorted.slice(start, start + MAX_PER_STATEMENT);
      const size = 2 ** Math.ceil(Math.log2(piece.length));
      // A repeated id does not change the result.
      while (piece.length < size) piece.push(piece.at(-1) as string);
      let text = this.#texts.get(size);
      if (text === undefined) {
        text = this.#build(database, piece).compile().sql;
        this.#texts.set(size, text);
      }
      const result = await database.executeQuery<Row>(CompiledQuery.raw(text, piece) as CompiledQuery<Row>);
      if (rows.length === 0) rows.push(...result.rows);
      else for (const row of result.rows) rows.push(row);
    }
    return rows;
  }
}

function batchSizeFor(count: number): number {
  return Math.min(MAX_PER_STATEMENT, 2 ** Math.floor(Math.log2(count)));
}
