/** `exportAccount`: yields an account's data as parts of one JSON document, for the person. Rows are read in pages, to limit memory. */
import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../tables.js';
import { STORED_DATA } from './stored-data.js';
import { columnsOf, type ExportedRows, type StoredTable } from './stored-table.js';

/** Rows per query. Few, so that other requests never wait long. */
const PAGE_ROWS = 100;

type Row = Readonly<Record<string, unknown>>;

/** Yields the document in parts, one line per row. A row that exists during the whole export appears exactly once. */
export async function* exportAccount(database: Database, accountId: string, now: number): AsyncGenerator<string> {
  const head = {
    format: 'inference account export',
    version: 1,
    account_id: accountId,
    exported_at: new Date(now).toISOString(),
    about: 'Times are UTC. Amounts of money are whole millionths of a US dollar. Columns as in the data protection document.',
  };
  yield `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "tables": {`;
  let separator = '';
  for (const [name, table] of STORED_DATA) {
    if (typeof table.exported === 'string') continue;
    yield `${separator}\n    ${JSON.stringify(name)}: {\n      "about": ${JSON.stringify(table.about)},\n      "rows": [`;
    separator = ',';
    yield* rowsOf(database, name, exportedColumns(table), table.exported, accountId);
    yield '\n      ]\n    }';
  }
  const omitted = [...STORED_DATA].flatMap(([name, { exported }]) => (typeof exported === 'string' ? [[name, exported]] : []));
  yield `\n  },\n  "not_included": ${JSON.stringify(Object.fromEntries(omitted), null, 2).replaceAll('\n', '\n  ')}\n}\n`;
}

async function* rowsOf(
  database: Database,
  name: string,
  exported: readonly string[],
  { rows: rowsOfAccount, key, added = {}, restricted }: ExportedRows,
  accountId: string,
): AsyncGenerator<string> {
  const condition = rowsOfAccount(accountId);
  const order = sql.join(key.map((column) => sql.ref(column)));
  const addedColumns = Object.entries(added).map(([column, value]) => sql`${value} as ${sql.ref(column)}`);
  const selected = (column: string) =>
    restricted?.columns.includes(column)
      ? sql`case when ${restricted.rows(accountId)} then ${sql.ref(column)} end as ${sql.ref(column)}`
      : sql.ref(column);
  const columns = sql.join([...[...new Set([...exported, ...key])].map(selected), ...addedColumns]);
  const members = [...exported, ...Object.keys(added)];
  let separator = '';
  for (let last: Row | undefined; ; ) {
    const after: Row | undefined = last;
    const afterLast = after === undefined ? sql`` : sql`and (${order}) > (${sql.join(key.map((column) => sql.val(after[column])))})`;
    const page: RawBuilder<Row> = sql`select ${columns} from ${sql.table(name)} where ${condition} ${afterLast} order by ${order} limit ${PAGE_ROWS}`;
    const { rows } = await page.execute(database);
    const lines = rows.map((row) => `\n        ${JSON.stringify(toReadable(row, members))}`);
    if (lines.length > 0) yield separator + lines.join(',');
    separator = ',';
    last = rows.at(-1);
    if (rows.length < PAGE_ROWS) return;
  }
}

/** Columns in an export: all except secrets and ids of other accounts. */
export function exportedColumns(table: StoredTable): string[] {
  return [...columnsOf(table, 'identity'), ...columnsOf(table, 'activity'), ...columnsOf(table, 'technical')];
}

const JSON_COLUMNS: ReadonlySet<string> = new Set(['details', 'facts', 'models', 'payload']);
/** Names of columns that contain times in milliseconds since 1970. */
const TIME_COLUMN = /(?:^at|^since|_at|_since|_until)$/;

function toReadable(row: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.map((column) => [column, readableValue(column, row[column])]));
}

function readableValue(column: string, value: unknown): unknown {
  if (typeof value === 'number' && TIME_COLUMN.test(column)) return new Date(value).toISOString();
  if (typeof value === 'string' && JSON_COLUMNS.has(column)) return parseJson(value);
  return value;
}

/** The parsed value; the text if it is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
