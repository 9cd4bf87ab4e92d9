/** `usePaginatedQuery` and `readAllRows`: load a list of the console or admin API page by page, with the API's cursor. */
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { api, type QueryValue } from './api-client.js';

interface Page<Row> {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
}

/** Maximum page size of the API. */
const MAX_PAGE_ROWS = 200;

/** `query`: parameters of every request, with `limit` as the page size. Result: `data` contains the rows of all loaded pages. */
export function usePaginatedQuery<Row>(queryKey: readonly unknown[], path: string, query: Readonly<Record<string, QueryValue>>) {
  const { data, ...list } = useInfiniteQuery({
    queryKey,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam: cursor, signal }) => api.get<Page<Row>>(path, { query: { ...query, cursor }, signal }),
    getNextPageParam: ({ next_cursor }) => next_cursor,
    placeholderData: keepPreviousData,
  });
  return { ...list, data: data?.pages.flatMap((page) => page.data) };
}

/** Reads all pages of a list. Only for lists of moderate length, such as the choices of a field. */
export async function readAllRows<Row>(path: string, signal?: AbortSignal): Promise<Row[]> {
  const rows: Row[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Row> = await api.get<Page<Row>>(path, { query: { limit: MAX_PAGE_ROWS, cursor }, signal });
    rows.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return rows;
}
