/** `preparePostgres`: prepares the PostgreSQL server of a local cluster. If this process is root, the server runs as another user. */
import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type Child, spawnChild } from '../child.js';
import { StartError } from '../start-error.js';
import type { InstalledPrograms } from './installed-programs.js';

interface User {
  readonly uid: number;
  readonly gid: number;
}

export interface PostgresOptions {
  readonly programs: InstalledPrograms;
  readonly dataDir: string;
  readonly logDir: string;
  readonly port: number;
  readonly maxConnections: number;
}

export interface PostgresServer {
  readonly start: () => Promise<Child>;
  readonly url: string;
  readonly directory: string;
}

const NAME = 'inference';
const POLL_MS = 50;

/** Creates missing data files with `initdb`, and returns how to start and reach the server. Throws {@link StartError}. */
export function preparePostgres({ programs, dataDir, logDir, port, maxConnections }: PostgresOptions): PostgresServer {
  const user = process.getuid?.() === 0 ? unprivilegedUser() : null;
  const directory = user === null ? join(dataDir, 'postgres') : reachableDirectory(dataDir, user);
  const passwordFile = join(dataDir, 'postgres-password');
  if (!existsSync(join(directory, 'PG_VERSION'))) initialize(programs.initdb, directory, passwordFile, user);
  const password = readFileSync(passwordFile, 'utf8').trim();
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    // No Unix socket, which would be in a system folder.
    unix_socket_directories: '',
    max_connections: String(maxConnections),
    shared_buffers: '64MB',
  };
  return {
    url: `postgres://${NAME}:${password}@127.0.0.1:${port}/postgres`,
    directory,
    start: () =>
      spawnChild({
        name: 'postgres',
        program: programs.postgres,
        argv: ['-D', directory, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
        env: process.env,
        logFile: join(logDir, 'postgres.log'),
        detached: true,
        ...(user === null ? {} : { user }),
      }),
  };
}

/** Resolves when the server accepts connections. Rejects when `signal` aborts. */
export async function postgresReady(port: number, signal: AbortSignal): Promise<void> {
  while (!(await accepts(port))) {
    signal.throwIfAborted();
    await new Promise((wake) => setTimeout(wake, POLL_MS));
  }
}

/** Whether the server responds with `R` (authentication request). A starting server responds with an error. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(startupMessage()));
    const end = (isReady: boolean): void => {
      socket.destroy();
      resolve(isReady);
    };
    socket.once('data', (bytes) => end(bytes[0] === 'R'.charCodeAt(0)));
    socket.once('error', () => end(false));
    socket.once('end', () => end(false));
  });
}

/** `StartupMessage` of PostgreSQL's frontend/backend protocol, version 3.0. */
function startupMessage(): Buffer {
  const body = Buffer.from(`user\0${NAME}\0database\0postgres\0\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + body.length, 0);
  head.writeInt32BE(3 << 16, 4);
  return Buffer.concat([head, body]);
}

function initialize(initdb: string, directory: string, passwordFile: string, user: User | null): void {
  const password = randomBytes(24).toString('base64url');
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  // An interrupted start may have left an incomplete directory.
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { mode: 0o700 });
  const initdbPasswordFile = `${directory}.password`;
  writeFileSync(initdbPasswordFile, `${password}\n`, { mode: 0o600 });
  if (user !== null) for (const path of [directory, initdbPasswordFile]) chownSync(path, user.uid, user.gid);
  const options = [
    `--username=${NAME}`,
    '--auth=scram-sha-256',
    `--pwfile=${initdbPasswordFile}`,
    '--encoding=UTF8',
    '--locale=C',
    '--no-sync',
  ];
  const result = spawnSync(initdb, [`--pgdata=${directory}`, ...options], { encoding: 'utf8', cwd: '/', ...user });
  rmSync(initdbPasswordFile, { force: true });
  if (result.status === 0) return;
  rmSync(directory, { recursive: true, force: true });
  throw new StartError(`PostgreSQL could not create its files in ${directory}:\n${result.error?.message ?? result.stderr.trim()}`);
}

/** User of the server if this process is root, because PostgreSQL refuses root. Throws {@link StartError}. */
function unprivilegedUser(): User {
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((flag) => Number.parseInt(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout, 10));
    if (uid !== undefined && gid !== undefined && uid > 0 && gid > 0) return { uid, gid };
  }
  throw new StartError('PostgreSQL does not run as root, and there is no user postgres or nobody. Start as another user.');
}

/** Directory of PostgreSQL's files: in the data directory if `user` can reach it, else in the temporary folder. */
function reachableDirectory(dataDir: string, user: User): string {
  const own = join(dataDir, 'postgres');
  if (canReach(dirname(resolve(dataDir)), user)) {
    // With 0711, other users may pass through the data directory, but not list it.
    chmodSync(dataDir, 0o711);
    return own;
  }
  const name = createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 16);
  const elsewhere = join(tmpdir(), `inference-cluster-postgres-${name}`);
  const facts = lstatSync(elsewhere, { throwIfNoEntry: false });
  if (facts !== undefined && (!facts.isDirectory() || facts.uid !== user.uid)) {
    throw new StartError(`${elsewhere} belongs to another user. Set DATA_DIR to a directory that every user can reach.`);
  }
  return elsewhere;
}

function canReach(directory: string, { uid, gid }: User): boolean {
  const facts = lstatSync(directory, { throwIfNoEntry: false });
  if (facts === undefined || !facts.isDirectory()) return false;
  const bit = facts.uid === uid ? 0o100 : facts.gid === gid ? 0o010 : 0o001;
  const parent = dirname(directory);
  return (facts.mode & bit) !== 0 && (parent === directory || canReach(parent, { uid, gid }));
}
