/** Cursor pagination of lists, newest first. Reads `limit`, `cursor` (position of the previous page's last row) and text filters. */
import { RequestError } from '@inference/formats';
import { parseQueryInteger } from './query.js';

/** `after` is null for the first page. Throws RequestError. */
export function readPageQuery(query: Readonly<Record<string, string | undefined>>): {
  readonly limit: number;
  readonly after: PageCursor | null;
} {
  const limit = readLimit(query);
  if (query.cursor === undefined) return { limit, after: null };
  const [, at, id] = /^(\d{1,15}):([^\0]{1,128})$/.exec(Buffer.from(query.cursor, 'base64url').toString('utf8')) ?? [];
  if (at === undefined || id === undefined)
    throw new RequestError('invalid_request', 'cursor', 'cursor must be the next_cursor of a page.');
  return { limit, after: { at: Number(at), id } };
}

export function readLimit(query: Readonly<Record<string, string | undefined>>): number {
  const limit = query.limit === undefined ? 50 : parseQueryInteger(query.limit);
  if (limit !== null && limit >= 1 && limit <= 200) return limit;
  throw new RequestError('invalid_request', 'limit', 'limit must be a whole number from 1 to 200.');
}

/** Position of a page's last row. Lists are sorted by time, then id. */
interface PageCursor {
  readonly at: number;
  readonly id: string;
}

export interface Page<Item> {
  readonly data: Item[];
  readonly next_cursor: string | null;
}

/**
 * Makes a page of at most `limit` items. Callers read `limit + 1` rows: the extra one means that a next page exists.
 */
export function toPage<Row, Item>(
  rows: readonly Row[],
  limit: number,
  positionOf: (row: Row) => PageCursor,
  itemOf: (row: Row) => Item,
): Page<Item> {
  const cursorOf = (row: Row): string => {
    const { at, id } = positionOf(row);
    return `${at}:${id}`;
  };
  return cutPage(rows, limit, cursorOf, itemOf);
}

/** Like {@link toPage}. `cursorOf` returns the cursor of a row, before its encoding. */
export function cutPage<Row, Item>(
  rows: readonly Row[],
  limit: number,
  cursorOf: (row: Row) => string,
  itemOf: (row: Row) => Item,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    data: shown.map(itemOf),
    next_cursor: rows.length > limit && last !== undefined ? Buffer.from(cursorOf(last)).toString('base64url') : null,
  };
}

const MAX_CHARACTERS = 256;

/** Text of a query parameter; null if absent or empty. Throws RequestError for a repeated or too long parameter. */
export function readTextFilter(query: Readonly<Record<string, unknown>>, name: string): string | null {
  const value = query[name];
  if (value === undefined || value === '') return null;
  if (typeof value === 'string' && value.length <= MAX_CHARACTERS) return value;
  throw new RequestError('invalid_request', name, `${name} must be one text of at most ${MAX_CHARACTERS} characters.`);
}
