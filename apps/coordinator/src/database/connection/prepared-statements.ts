/**
 * Statements over a varying number of rows or ids, compiled once per size. Compiling costs more than execution, and one statement
 * for many rows saves round trips.
 *
 * Sizes are powers of two: rows are written in few pieces, and lists of ids are padded with their last id.
 *
 * Within a transaction each statement waits for the previous one. A statement sent beside a failing one would reach the database
 * after the rollback, and stay.
 */
import { type Compilable, CompiledQuery, type InsertQueryBuilder, type InsertResult, type Kysely } from 'kysely';
import type { Database, Tables } from '../tables.js';

/** Maximum piece: its 27 columns stay far below SQLite's 32,766 parameters. */
const MAX_PER_STATEMENT = 256;

type Columns<T extends keyof Tables> = keyof Tables[T] & string;
// The rows' types are checked at `write`; in between, tables are names.
type AnyTables = Record<string, Record<string, unknown>>;
type AnyInsert = InsertQueryBuilder<AnyTables, string, InsertResult>;

interface RowWriter<Row> {
  /** Writes all rows in order. Resolves to the rows returned by the statements, if `finish` adds a returning clause. */
  write(database: Database, rows: readonly Row[]): Promise<unknown[]>;
}

/** Writer for rows of these columns. `finish` adds the conflict clause, which must not have parameters. */
export function rowWriter<T extends keyof Tables & string, Column extends Columns<T>>(
  table: T,
  columns: readonly Column[],
  finish: (insert: AnyInsert) => Compilable = (insert) => insert,
): RowWriter<{ readonly [C in Column]: unknown } & object> {
  const texts = new Map<number, string>();
  const placeholder = Object.fromEntries(columns.map((column) => [column, 0]));
  const textFor = (database: Database, size: number): string => {
    let text = texts.get(size);
    if (text === undefined) {
      const insert = (database as unknown as Kysely<AnyTables>)
        .insertInto<string>(table)
        .values(Array.from({ length: size }, () => placeholder));
      text = finish(insert).compile().sql;
      texts.set(size, text);
    }
    return text;
  };
  return {
    async write(database, rows) {
      const returned: unknown[] = [];
      for (let start = 0; start < rows.length; ) {
        const size = pieceOf(rows.length - start);
        const parameters: unknown[] = [];
        for (let index = start; index < start + size; index++) {
          const row = rows[index] as Record<Column, unknown>;
          for (const column of columns) parameters.push(row[column]);
        }
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

/** `set column = excluded.column` for each column. */
export function replaceOnConflict(keys: readonly string[], columns: readonly string[]): (insert: AnyInsert) => AnyInsert {
  return (insert) =>
    insert.onConflict((conflict) =>
      conflict
        .columns([...keys])
        .doUpdateSet((set) => Object.fromEntries(columns.map((column) => [column, set.ref(`excluded.${column}`)]))),
    );
}

/** Query whose only parameters are a list of ids. Rows are returned piece by piece, in the query's order. */
export class IdQuery<Row> {
  readonly #build: (database: Database, ids: readonly string[]) => { compile(): CompiledQuery<Row> };
  readonly #texts = new Map<number, string>();

  constructor(build: (database: Database, ids: readonly string[]) => { compile(): CompiledQuery<Row> }) {
    this.#build = build;
  }

  /** Runs the query with ascending ids, so row locks have one order. */
  async read(database: Database, ids: Iterable<string>): Promise<Row[]> {
    const sorted = [...new Set(ids)].sort();
    const rows: Row[] = [];
    for (let start = 0; start < sorted.length; start += MAX_PER_STATEMENT) {
      const piece = sorted.slice(start, start + MAX_PER_STATEMENT);
      const size = 2 ** Math.ceil(Math.log2(piece.length));
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

function pieceOf(count: number): number {
  return Math.min(MAX_PER_STATEMENT, 2 ** Math.floor(Math.log2(count)));
}
