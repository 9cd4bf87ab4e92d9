/** `exportAccount`: all rows of an account as one JSON document, read page by page, so that memory stays bounded. */
import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../tables.js';
import { STORED_DATA } from './stored-data.js';
import { columnsOf, type ExportedRows, type StoredTable } from './stored-table.js';

/** Rows per read, few enough that concurrent requests never wait long. */
const PAGE = 100;

type Row = Readonly<Record<string, unknown>>;

/** Parts of the document. Each row is a line. Rows that exist during the whole export appear exactly once. */
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
  shown: readonly string[],
  { rows: rowsOfAccount, key, also = {}, only }: ExportedRows,
  accountId: string,
): AsyncGenerator<string> {
  const condition = rowsOfAccount(accountId);
  const order = sql.join(key.map((column) => sql.ref(column)));
  const further = Object.entries(also).map(([column, value]) => sql`${value} as ${sql.ref(column)}`);
  const selected = (column: string) =>
    only?.columns.includes(column)
      ? sql`case when ${only.of(accountId)} then ${sql.ref(column)} end as ${sql.ref(column)}`
      : sql.ref(column);
  const columns = sql.join([...[...new Set([...shown, ...key])].map(selected), ...further]);
  const members = [...shown, ...Object.keys(also)];
  let separator = '';
  for (let last: Row | undefined; ; ) {
    const after: Row | undefined = last;
    const from = after === undefined ? sql`` : sql`and (${order}) > (${sql.join(key.map((column) => sql.val(after[column])))})`;
    const page: RawBuilder<Row> = sql`select ${columns} from ${sql.table(name)} where ${condition} ${from} order by ${order} limit ${PAGE}`;
    const { rows } = await page.execute(database);
    const lines = rows.map((row) => `\n        ${JSON.stringify(readable(row, members))}`);
    if (lines.length > 0) yield separator + lines.join(',');
    separator = ',';
    last = rows.at(-1);
    if (rows.length < PAGE) return;
  }
}

/** Columns of an export: neither secrets nor ids of other accounts. */
export function exportedColumns(table: StoredTable): string[] {
  return [...columnsOf(table, 'identity'), ...columnsOf(table, 'activity'), ...columnsOf(table, 'technical')];
}

/** Columns with JSON texts. */
const JSON_COLUMNS: ReadonlySet<string> = new Set(['details', 'facts', 'models', 'payload']);
/** Columns with times in milliseconds. */
const TIME = /(?:^at|^since|_at|_since|_until)$/;

function readable(row: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.map((column) => [column, readableValue(column, row[column])]));
}

function readableValue(column: string, value: unknown): unknown {
  if (typeof value === 'number' && TIME.test(column)) return new Date(value).toISOString();
  if (typeof value === 'string' && JSON_COLUMNS.has(column)) return parsed(value);
  return value;
}

/** Value of a JSON text; the text itself if it is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
