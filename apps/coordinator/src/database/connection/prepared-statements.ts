/**
 * Statements over a varying number of rows or ids, built and compiled once per size. Building one costs more than running it,
 * and a set of rows in one statement saves a round trip each. Sizes are powers of two: rows are written in a few pieces, and
 * lists of ids are filled up with their last one.
 *
 * Within a transaction every statement waits for the one before. Those sent beside one that fails would reach the database
 * after the rollback that the failure brings, and stay.
 */
import { type Compilable, CompiledQuery, type InsertQueryBuilder, type InsertResult, type Kysely } from 'kysely';
import type { Database, Tables } from '../tables.js';

/** Largest piece: 27 columns of it stay far below SQLite's 32,766 parameters. */
const MAX_PER_STATEMENT = 256;

type Columns<T extends keyof Tables> = keyof Tables[T] & string;
// The rows' types are checked at `write`; in between, tables are names.
type AnyTables = Record<string, Record<string, unknown>>;
type AnyInsert = InsertQueryBuilder<AnyTables, string, InsertResult>;

export interface RowWriter<Row> {
  /** Writes all rows, in their order. Resolves to what the statements return, where `finish` made them return something. */
  write(database: Database, rows: readonly Row[]): Promise<unknown[]>;
}

/** A writer of rows of these columns; `finish` adds the conflict clause, which must have no parameters. */
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

/** `set column = table.column + excluded.column` for each of these: the row counts things that only add up. */
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

/** `set column = excluded.column` for each of these. */
export function replaceOnConflict(keys: readonly string[], columns: readonly string[]): (insert: AnyInsert) => AnyInsert {
  return (insert) =>
    insert.onConflict((conflict) =>
      conflict
        .columns([...keys])
        .doUpdateSet((set) => Object.fromEntries(columns.map((column) => [column, set.ref(`excluded.${column}`)]))),
    );
}

/** A query by a list of ids, its only parameters. Rows come back piece by piece in the query's own order. */
export class IdQuery<Row> {
  readonly #build: (database: Database, ids: readonly string[]) => { compile(): CompiledQuery<Row> };
  readonly #texts = new Map<number, string>();

  constructor(build: (database: Database, ids: readonly string[]) => { compile(): CompiledQuery<Row> }) {
    this.#build = build;
  }

  /** Runs it for the ids in ascending order, so that whoever locks rows with it locks them in one order. */
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
