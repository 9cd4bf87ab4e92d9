/** Downloads, streamed with back-pressure: account data as JSON, and logs as JSON lines or CSV. */
import { Readable } from 'node:stream';
import { RequestError } from '@inference/formats';
import type { FastifyReply } from 'fastify';
import Type from 'typebox';
import { CSV_TYPE, csvLine } from '../billing/csv.js';

export interface Download {
  /** Suggested name of the file. */
  readonly name: string;
  /** Media type. */
  readonly type: string;
  readonly parts: AsyncIterable<string>;
}

export const JSON_TYPE = 'application/json; charset=utf-8';
const JSON_LINES_TYPE = 'application/jsonl; charset=utf-8';

/** Media types of {@link logDownload}. */
export const LOG_TYPES = [JSON_LINES_TYPE, CSV_TYPE] as const;

export function downloadSchema(types: readonly string[]) {
  return { response: { 200: { content: Object.fromEntries(types.map((type) => [type, { schema: Type.String() }])) } } };
}

export function sendDownload(reply: FastifyReply, { name, type, parts }: Download): FastifyReply {
  reply.headers({ 'cache-control': 'no-store', 'content-type': type, 'content-disposition': `attachment; filename="${name}"` });
  return reply.send(Readable.from(parts));
}

/**
 * Download of a log as JSON lines (`?format=jsonl`, the default) or CSV (`?format=csv`).
 *
 * @param name File name without extension.
 * @param pages Entries, newest first.
 * @throws {RequestError} Another format.
 */
export function logDownload<Entry extends object>(
  name: string,
  format: string | undefined,
  pages: AsyncIterable<readonly Entry[]>,
  csv: { readonly columns: readonly string[]; readonly fields: (entry: Entry) => readonly (string | null)[] },
): Download {
  if (format === undefined || format === 'jsonl') return { name: `${name}.jsonl`, type: JSON_LINES_TYPE, parts: jsonLines(pages) };
  if (format !== 'csv') throw new RequestError('invalid_request', 'format', 'format must be jsonl or csv.');
  return { name: `${name}.csv`, type: CSV_TYPE, parts: csvLines(pages, csv) };
}

async function* jsonLines(pages: AsyncIterable<readonly object[]>): AsyncGenerator<string> {
  for await (const page of pages) yield page.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

async function* csvLines<Entry>(
  pages: AsyncIterable<readonly Entry[]>,
  { columns, fields }: { readonly columns: readonly string[]; readonly fields: (entry: Entry) => readonly (string | null)[] },
): AsyncGenerator<string> {
  yield csvLine(columns);
  for await (const page of pages) yield page.map((entry) => csvLine(fields(entry).map((field) => field ?? ''))).join('');
}

const PAGE_ROWS = 500;

/** Reads all rows of a list, page by page. `read` returns at most `limit` rows that follow the row `after`. */
export async function* allPages<Row extends { readonly at: number; readonly id: string }>(
  read: (limit: number, after: { readonly at: number; readonly id: string } | null) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  for (let after: Row | null = null; ; ) {
    const rows: readonly Row[] = await read(PAGE_ROWS, after);
    yield rows;
    const last = rows.at(-1);
    if (rows.length < PAGE_ROWS || last === undefined) return;
    after = last;
  }
}
