import { afterEach, expect, it, vi } from 'vitest';
import { readAllRows } from '../../src/api/paginated-query.js';

afterEach(() => {
  vi.unstubAllGlobals();
});

it('reads all pages of a list', async () => {
  const requested: string[] = [];
  const pages: Readonly<Record<string, object>> = {
    '/console/v1/keys?limit=200': { data: [1, 2], next_cursor: 'b&' },
    '/console/v1/keys?limit=200&cursor=b%26': { data: [3], next_cursor: null },
  };
  vi.stubGlobal('fetch', async (url: string) => {
    requested.push(url);
    return Response.json(pages[url]);
  });
  expect(await readAllRows('/console/v1/keys')).toEqual([1, 2, 3]);
  expect(requested).toEqual(Object.keys(pages));
});
