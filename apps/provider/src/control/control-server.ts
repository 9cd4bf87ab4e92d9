/** `ControlServer`: HTTP on a Unix socket with mode 0600. The socket is also a lock of the daemon, the supervisor and `lockMachine`. */
import { chmodSync, closeSync, openSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { controlPath, makeControlFolder } from './address.js';
import { answerRequest } from './answer-request.js';
import type { ControlRoute } from './route.js';

export class AlreadyRunningError extends Error {
  constructor(dataDir: string) {
    super(`another provider is already running with the data directory ${dataDir}`);
    this.name = 'AlreadyRunningError';
  }
}

/** Age in milliseconds after which the lock file of an interrupted start is ignored. */
const STUCK_START_MS = 10_000;
const CONNECT_MS = 2_000;
/** Maximum time for a whole request to arrive, in milliseconds. */
const REQUEST_MS = 10_000;

export class ControlServer {
  private constructor(private readonly server: Server) {}

  /**
   * Locks the data directory for this process. Throws {@link AlreadyRunningError}, or an Error if the socket cannot be created.
   *
   * @param socket File name. Default: the daemon's.
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
