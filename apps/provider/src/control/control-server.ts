/**
 * `ControlServer`: HTTP server on a Unix socket with mode 0600, by which commands reach the daemon.
 *
 * Only one process can listen on a socket, so each socket is also a lock, for the daemon, the supervisor and `lockMachine`.
 */
import { chmodSync, closeSync, openSync, rmSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { systemProblem } from '../files/system-error.js';
import { controlPath, makeControlFolder } from './address.js';
import { BadBody, ControlRefusal, type ControlRoute } from './route.js';

export class AlreadyRunningError extends Error {
  constructor(dataDir: string) {
    super(`another provider is already running with the data directory ${dataDir}`);
    this.name = 'AlreadyRunningError';
  }
}

/** Age after which a lock file belongs to an interrupted start. */
const STUCK_START_MS = 10_000;
const CONNECT_MS = 2_000;
/** Maximum time for a whole request to arrive. */
const REQUEST_MS = 10_000;

export class ControlServer {
  private constructor(private readonly server: Server) {}

  /**
   * Listens, which locks the data directory for this process. Throws {@link AlreadyRunningError}, or an Error if the socket cannot be created.
   *
   * @param socket File name of the socket. Default: the daemon's.
   */
  static async open(dataDir: string, routes: readonly ControlRoute[], socket?: string): Promise<ControlServer> {
    const path = controlPath(dataDir, socket);
    makeControlFolder(path);
    const release = lockStart(`${path}.start`, dataDir);
    try {
      if (await isListening(path)) throw new AlreadyRunningError(dataDir);
      rmSync(path, { force: true });
      const server = createServer({ requestTimeout: REQUEST_MS }, (request, response) => {
        void answerRequest(routes, request, response);
      });
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(path, resolve);
        // `listen` binds synchronously, so the mode changes before any client connects.
        if (server.listening) chmodSync(path, 0o600);
      });
      return new ControlServer(server);
    } finally {
      release();
    }
  }

  /** Accepts no more commands, and unlocks the data directory. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeAllConnections();
    await closed;
  }
}

/** Serializes starts, so that only one process replaces the socket of a dead daemon. */
function lockStart(path: string, dataDir: string): () => void {
  for (let tries = 0; tries < 2; tries++) {
    try {
      closeSync(openSync(path, 'wx', 0o600));
      return () => rmSync(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      if (Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) < STUCK_START_MS) throw new AlreadyRunningError(dataDir);
      rmSync(path, { force: true });
    }
  }
  throw new AlreadyRunningError(dataDir);
}

/** Whether a process listens on the socket. A frozen process is treated as listening. */
function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const done = (listening: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(listening);
    };
    const timer = setTimeout(() => done(true), CONNECT_MS);
    socket.once('connect', () => done(true));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => done(code !== 'ECONNREFUSED' && code !== 'ENOENT' && code !== 'ENOTSOCK'));
  });
}

const MAX_BODY_BYTES = 64 * 1024;

/** Never rejects: errors become answers. */
async function answerRequest(routes: readonly ControlRoute[], request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? '').split('?')[0];
  const here = routes.filter((route) => route.path === path);
  const route = here.find(({ method }) => method === request.method);
  if (route === undefined) {
    const allow = here.map(({ method }) => method).join(', ');
    if (allow === '') reply(response, 404, refusal('not_found', 'there is nothing at this address'));
    else reply(response, 405, refusal('method_not_allowed', `this address takes ${allow}`), { allow });
    return;
  }
  try {
    reply(response, 200, (await route.answer(await bodyOf(request))) ?? {});
  } catch (error) {
    const message = error instanceof Error ? error.message : 'unknown';
    if (error instanceof BadBody) reply(response, 400, refusal('bad_body', message));
    else if (error instanceof ControlRefusal) reply(response, 409, refusal(error.code, message));
    else reply(response, 500, refusal('internal', systemProblem(error) ?? message));
  }
}

function refusal(code: string, message: string): unknown {
  return { error: { code, message } };
}

function reply(response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** Parsed body; undefined if empty. Throws {@link BadBody}. */
async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += (part as Buffer).length;
    if (bytes > MAX_BODY_BYTES) throw new BadBody(`the body is longer than ${MAX_BODY_BYTES} bytes`);
    parts.push(part as Buffer);
  }
  if (bytes === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw new BadBody('the body is not JSON');
  }
}
