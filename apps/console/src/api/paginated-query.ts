/** `usePaginatedQuery`: loads a list of the console or admin API page by page, with the API's cursor. */
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { api, type QueryValue } from './api-client.js';

interface Page<Row> {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
}

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
