/** HTTP server for the files of a folder, with range requests, like an object store. */
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { addressOf, closeServer, listenLocally } from './local-server.js';

export interface FileHost {
  readonly url: string;
  close(): Promise<void>;
}

export async function startFileHost(folder: string): Promise<FileHost> {
  const server = createServer((request, response) => {
    const path = join(folder, basename(decodeURIComponent((request.url ?? '').split('?')[0] as string)));
    const size = statSync(path, { throwIfNoEntry: false })?.size;
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const start = Number(range?.[1] ?? 0);
    if (size === undefined || start >= size) {
      response.writeHead(size === undefined ? 404 : 416).end();
      return;
    }
    const end = range === null || range[2] === '' ? size - 1 : Math.min(Number(range[2]), size - 1);
    const part = range === null ? {} : { 'content-range': `bytes ${start}-${end}/${size}` };
    response.writeHead(range === null ? 200 : 206, { 'content-length': end - start + 1, ...part });
    createReadStream(path, { start, end }).pipe(response);
  });
  await listenLocally(server);
  return {
    url: addressOf(server),
    close: async () => {
      await closeServer(server);
    },
  };
}
