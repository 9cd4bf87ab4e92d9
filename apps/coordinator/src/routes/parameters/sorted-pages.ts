/**
 * Cursor pagination of lists that clients may sort. Reads `limit`, `sort`, `order` and `cursor`, and makes pages.
 *
 * A cursor contains `sort`, `order`, and the sorted value and id of a page's last row. It is invalid for another `sort` or `order`.
 */
import { RequestError, SORT_ORDERS, type SortOrder } from '@inference/formats';
import { cutPage, type Page, readLimit } from './pagination.js';

type Query = Readonly<Record<string, string | undefined>>;

interface Position {
  readonly value: number | string;
  readonly id: string;
}

interface SortedPage<Sort extends string> {
  readonly limit: number;
  readonly sort: Sort;
  readonly order: SortOrder;
  readonly after: Position | null;
}

/** Reads the query parameters of a page. The first of `sorts`, in descending order, is the default. Throws RequestError. */
export function readSortedPage<Sort extends string>(query: Query, sorts: readonly [Sort, ...Sort[]]): SortedPage<Sort> {
  const sort = readChoice(query, 'sort', sorts);
  const order = readChoice(query, 'order', SORT_ORDERS);
  return { limit: readLimit(query), sort, order, after: query.cursor === undefined ? null : readCursor(query.cursor, sort, order) };
}

/** Makes a page of at most `limit` items. Callers read `limit + 1` rows: the extra one means that a next page exists. */
export function toSortedPage<Row, Item, Sort extends string>(
  rows: readonly Row[],
  { limit, sort, order }: SortedPage<Sort>,
  positionOf: (row: Row) => Position,
  itemOf: (row: Row) => Item,
): Page<Item> {
  const cursorOf = (row: Row): string => {
    const { value, id } = positionOf(row);
    return JSON.stringify([sort, order, value, id]);
  };
  return cutPage(rows, limit, cursorOf, itemOf);
}

function readChoice<Value extends string>(query: Query, name: string, allowed: readonly [Value, ...Value[]]): Value {
  const requested = query[name];
  if (requested === undefined) return allowed[0];
  const found = allowed.find((value) => value === requested);
  if (found !== undefined) return found;
  throw new RequestError('invalid_request', name, `${name} must be one of ${allowed.join(', ')}.`);
}

const MAX_ID_LENGTH = 128;
const MAX_VALUE_LENGTH = 256;

function readCursor(cursor: string, sort: string, order: SortOrder): Position {
  const [cursorSort, cursorOrder, value, id] = parseCursor(cursor);
  const isMatching = cursorSort === sort && cursorOrder === order;
  // `model` is the only sort by a text.
  const isValid = sort === 'model' ? isText(value, MAX_VALUE_LENGTH) : Number.isSafeInteger(value);
  if (isMatching && isValid && isText(id, MAX_ID_LENGTH)) return { value: value as number | string, id };
  throw new RequestError('invalid_request', 'cursor', 'cursor must be the next_cursor of a page with the same sort and order.');
}

/** Whether a value is a text of at most `maxLength` characters, without NUL, which PostgreSQL refuses. */
function isText(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && value.length <= maxLength && !value.includes('\0');
}

/** Members of the JSON array in the cursor. Empty if the cursor is malformed. */
function parseCursor(cursor: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
