/** A file server for tests, which also stands for the Hugging Face hub, and which breaks in ways that servers break. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { addressOf, closeServer, listenLocally } from '../../../test/support/local-server.js';

export interface ServedFile {
  body: Buffer;
  etag: string | null;
}

/** Called for every request of a file. Returns true if the callback has answered. */
export type Fault = (request: IncomingMessage, response: ServerResponse, file: ServedFile, count: number) => boolean;

export class FileServer {
  readonly files = new Map<string, ServedFile>();
  /** Answers of the hub's search. */
  readonly repositories: { readonly id: string; readonly downloads: number; readonly gated?: string; readonly pipeline_tag?: string }[] =
    [];
  /** Sizes that the hub tells for files, where they are others than the true ones. */
  readonly reportedSizes = new Map<string, number>();
  readonly ranges: string[] = [];
  readonly authorizations: (string | undefined)[] = [];
  supportsRanges = true;
  fault: Fault = () => false;
  /** Bytes of bodies that were sent. */
  sent = 0;
  #count = 0;
  /** SHA-256 that the hub tells, where it is another than the true one. */
  wrongHash: string | null = null;
  readonly #server = createServer((request, response) => this.#answer(request, response));

  static async listen(): Promise<FileServer> {
    const server = new FileServer();
    await listenLocally(server.#server);
    return server;
  }

  get url(): string {
    return addressOf(this.#server);
  }

  put(path: string, body: Buffer): void {
    this.files.set(path, { body, etag: `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"` });
  }

  async close(): Promise<void> {
    await closeServer(this.#server);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent((request.url ?? '').split('?')[0] as string);
    this.authorizations.push(request.headers.authorization);
    if (path === '/api/models') {
      this.#search(new URL(request.url ?? '', this.url).searchParams, response);
      return;
    }
    const repository = /^\/api\/models\/(.+)\/tree\/main$/.exec(path)?.[1];
    if (repository !== undefined) {
      this.#tree(repository, response);
      return;
    }
    const file = this.files.get(path);
    if (file === undefined) {
      response.writeHead(404).end();
      return;
    }
    this.#count++;
    if (request.headers.range !== 'bytes=0-0') this.ranges.push(request.headers.range ?? '');
    if (!this.fault(request, response, file, this.#count)) this.send(request, response, file);
  }

  /** The right answer, or as many bytes of it as `cut` says before the connection breaks. */
  send(request: IncomingMessage, response: ServerResponse, { body, etag }: ServedFile, cut = Number.POSITIVE_INFINITY): void {
    const headers: Record<string, string> = etag === null ? {} : { etag };
    const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const stale = request.headers['if-range'] !== undefined && request.headers['if-range'] !== etag;
    if (!this.supportsRanges || match === null || stale) {
      response.writeHead(200, { ...headers, 'content-length': body.length });
      this.#write(response, body, cut);
      return;
    }
    const [start, end] = [Number(match[1]), Math.min(Number(match[2]), body.length - 1)];
    response.writeHead(206, { ...headers, 'content-length': end - start + 1, 'content-range': `bytes ${start}-${end}/${body.length}` });
    this.#write(response, body.subarray(start, end + 1), cut);
  }

  #write(response: ServerResponse, bytes: Buffer, cut: number): void {
    const part = bytes.subarray(0, cut);
    this.sent += part.length;
    if (part.length === bytes.length) response.end(part);
    else response.write(part, () => response.destroy());
  }

  /** Repositories whose names hold every word of the search, most downloaded first. */
  #search(query: URLSearchParams, response: ServerResponse): void {
    const words = (query.get('search') ?? '').toLowerCase().split(' ');
    const found = this.repositories
      .filter(({ id }) => words.every((word) => id.toLowerCase().includes(word)))
      .sort((a, b) => b.downloads - a.downloads)
      .slice(0, Number(query.get('limit')));
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found));
  }

  #tree(repository: string, response: ServerResponse): void {
    const prefix = `/${repository}/resolve/main/`;
    const entries = [...this.files].filter(([path]) => path.startsWith(prefix));
    if (entries.length === 0) {
      response.writeHead(404).end('{}');
      return;
    }
    const list = entries.map(([path, { body }]) => ({
      type: 'file',
      oid: 'a'.repeat(40),
      size: this.reportedSizes.get(path) ?? body.length,
      path: path.slice(prefix.length),
      lfs: { oid: this.wrongHash ?? createHash('sha256').update(body).digest('hex'), size: body.length, pointerSize: 134 },
    }));
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(list));
  }
}
