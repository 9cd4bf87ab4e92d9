/** Local HTTP proxy that seals and verifies requests of programs without a `fetch` option. Listens on loopback only. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { MAX_E2E_VISION_BODY_BYTES } from '@inference/protocol';
import { createVerifiedFetch, E2ERefused, type VerifiedFetch, type VerifiedFetchOptions } from '../node.js';
import { type LoggedVerdict, VerdictLog } from './verdict-log.js';

/** Paths of the proxy. Never relayed, because the coordinator could answer with false verdicts. */
const OWN_PATHS = '/.inference/';
const VERDICT_PATH = `${OWN_PATHS}verdict`;
const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]'];
/** Headers of a program's request that the verified fetch reads. */
const READ_HEADERS = [
  'authorization',
  'x-api-key',
  'accept',
  'content-type',
  'content-encoding',
  'anthropic-beta',
  'x-inference-nonce',
  'x-inference-provider-id',
];
/** Response headers that describe the connection to the coordinator. */
const CONNECTION_HEADERS = new Set(['connection', 'content-encoding', 'content-length', 'keep-alive', 'transfer-encoding', 'set-cookie']);

export interface ProxyOptions extends Omit<VerifiedFetchOptions, 'onVerdict'> {
  /** Called with each final verdict. */
  readonly onVerdict?: (verdict: LoggedVerdict) => void;
}

export interface LocalProxy {
  /** Listens on a loopback address; port 0 chooses a free port. Rejects if the address is not free. */
  listen(host: '127.0.0.1' | '::1', port: number): Promise<AddressInfo>;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Creates a proxy. Throws `PolicyError` or `TypeError` for an invalid option. */
export function createProxy({ onVerdict, ...options }: ProxyOptions): LocalProxy {
  const log = new VerdictLog();
  const now = options.now ?? Date.now;
  const fetch = createVerifiedFetch({
    ...options,
    onVerdict: (verdict, exchange) => {
      const logged = log.add(verdict, exchange, now());
      onVerdict?.(logged);
    },
  });
  const base = new URL(options.baseURL).origin + new URL(options.baseURL).pathname.replace(/\/+$/, '').replace(/\/v1$/, '');
  const server = createServer((request, response) => {
    serve({ request, response, server, fetch, base, log }).catch((error: unknown) => fail(response, request.url ?? '', error));
  });
  return {
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve(server.address() as AddressInfo);
        });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Served {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly server: Server;
  readonly fetch: VerifiedFetch;
  readonly base: string;
  readonly log: VerdictLog;
}

async function serve({ request, response, server, fetch, base, log }: Served): Promise<void> {
  const refusal = originProblem(request, (server.address() as AddressInfo).port);
  if (refusal !== null) return sendError(response, 403, 'not_local', refusal);
  const path = request.url ?? '/';
  const own = ownPathOf(path);
  if (own === VERDICT_PATH && request.method === 'GET') return sendJson(response, 200, { verdicts: log.verdicts });
  if (own !== null) return sendError(response, 404, 'not_found', `The only path of the proxy itself is GET ${VERDICT_PATH}.`);
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const body = isRead ? null : await readBody(request);
  if (body === undefined) return sendError(response, 413, 'body_too_large', `The request body is over ${MAX_E2E_VISION_BODY_BYTES} bytes.`);
  const disconnected = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) disconnected.abort();
  });
  const answer = await fetch(base + path, {
    method: request.method ?? 'GET',
    headers: READ_HEADERS.flatMap((name): [string, string][] => {
      const value = request.headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    }),
    body,
    signal: disconnected.signal,
  });
  await send(response, answer, path);
}

/** Returns the normalized path of a resource of the proxy itself; null for a path of the coordinator. */
function ownPathOf(target: string): string | null {
  if (!target.startsWith('/')) return null;
  const pathname = new URL(`http://localhost${target}`).pathname.replace(/\/{2,}/g, '/');
  return `${pathname}/`.startsWith(OWN_PATHS) ? pathname : null;
}

/** Returns the reason to refuse a request of a web page (Origin header, DNS rebinding); null: accepted. */
function originProblem({ headers }: IncomingMessage, port: number): string | null {
  const isLocal = LOOPBACK_NAMES.some((name) => headers.host === `${name}:${port}`);
  if (!isLocal) return 'The Host header must name a loopback address and the port of this proxy.';
  return headers.origin === undefined ? null : 'This proxy serves no web pages.';
}

/** Reads the whole body; undefined for a body that is too large. */
async function readBody(request: IncomingMessage): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > MAX_E2E_VISION_BODY_BYTES) return undefined;
    pieces.push(piece);
  }
  return new Uint8Array(Buffer.concat(pieces));
}

async function send(response: ServerResponse, answer: Response, path: string): Promise<void> {
  const headers = [...answer.headers].filter(([name]) => !CONNECTION_HEADERS.has(name) && !name.startsWith('access-control-'));
  response.writeHead(answer.status, headers.flat());
  // The program sees at once that its stream begins.
  response.flushHeaders();
  const isStream = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream');
  try {
    for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
      if (!response.write(chunk)) await untilDrained(response);
    }
    response.end();
  } catch (error) {
    if (!(error instanceof E2ERefused) || !isStream) throw error;
    response.end(errorEvent(path, error));
  }
}

/** Waits until the program has read the written bytes, or has disconnected. */
function untilDrained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}

/** Returns the last event of a refused stream, in the format of the endpoint. No terminator follows. */
function errorEvent(path: string, { code, message }: E2ERefused): string {
  if (path.startsWith('/v1/messages')) {
    const error = { type: 'e2e_refused', message, details: { code } };
    return `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`;
  }
  if (path.startsWith('/v1/responses')) return `event: error\ndata: ${JSON.stringify({ type: 'error', code, message, param: null })}\n\n`;
  return `data: ${JSON.stringify({ error: { message, type: 'e2e_refused', param: null, code } })}\n\n`;
}

function fail(response: ServerResponse, path: string, error: unknown): void {
  if (response.destroyed || response.headersSent) {
    response.destroy();
    return;
  }
  if (error instanceof E2ERefused) {
    sendError(response, 403, error.code, error.message);
    return;
  }
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
  sendError(response, 502, 'unreachable', `${path.split('?')[0]} cannot be relayed: ${reason}`);
}

function sendError(response: ServerResponse, status: number, code: string, message: string): void {
  sendJson(response, status, { error: { message, type: 'e2e_refused', param: null, code } }, status < 500);
}

function sendJson(response: ServerResponse, status: number, value: unknown, isFinal = false): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    ...(isFinal ? { 'x-should-retry': 'false', connection: 'close' } : {}),
  });
  response.end(JSON.stringify(value));
}
