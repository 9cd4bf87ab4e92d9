/**
 * Finds and runs PostgreSQL's own programs (`pg_dump`, `pg_restore`, `psql`) for backup and restore.
 *
 * The programs must have the server's major version. Credentials are passed in the environment, because all users see arguments.
 */
import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { StartupError } from '../config/startup-error.js';
import { BACKUP_APPLICATION } from '../database/backup/postgres-snapshot.js';

export type PostgresTool = 'pg_dump' | 'pg_restore' | 'psql';

/** Maximum characters stored of a program's stderr; the oldest are dropped. */
const MAX_MESSAGES = 4000;
const CONNECT_TIMEOUT_SECONDS = '10';

interface FoundTool {
  readonly path: string;
  readonly version: string;
}

/**
 * Path of a program that has the server's major version.
 *
 * @param directory Folder of `--postgres-bin`. Null: the PATH, and the folders where packages install the program.
 * @throws {StartupError} The program is missing, or only other versions were found.
 */
export async function findPostgresTool(tool: PostgresTool, serverMajor: number, directory: string | null): Promise<string> {
  const places = directory === null ? usualPlaces(tool, serverMajor) : [join(directory, tool)];
  const found: FoundTool[] = [];
  for (const path of places) {
    const version = await versionOf(path);
    if (version !== null && Number.parseInt(version, 10) === serverMajor) return path;
    if (version !== null) found.push({ path, version });
  }
  const where = directory === null ? 'on this machine' : `in ${directory}`;
  const others = found.map(({ path, version }) => `${path} is version ${version}`).join(', ');
  throw new StartupError(
    `${tool} of PostgreSQL ${serverMajor}, the server's version, was not found ${where}${others === '' ? '' : ` (${others})`}. ` +
      `Install it (Debian: postgresql-client-${serverMajor}), or name its folder with --postgres-bin.`,
  );
}

function usualPlaces(tool: PostgresTool, major: number): string[] {
  return [
    tool,
    join('/usr/lib/postgresql', String(major), 'bin', tool),
    join(`/usr/pgsql-${major}`, 'bin', tool),
    join(`/opt/homebrew/opt/postgresql@${major}`, 'bin', tool),
    join(`/usr/local/opt/postgresql@${major}`, 'bin', tool),
  ];
}

/** Version of the program at a path. Null: it is missing or does not run. */
async function versionOf(path: string): Promise<string | null> {
  try {
    const { stdout } = await promisify(execFile)(path, ['--version']);
    return /\(PostgreSQL\) (\d+(?:\.\d+)*)/.exec(stdout)?.[1] ?? null;
  } catch {
    return null;
  }
}

/** Environment variables of libpq (`PGHOST`, …) for a database URL. URL parameters that only other drivers know are left out. */
export function connectionVariables(url: string): Record<string, string> {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  const values: Record<string, string | null> = {
    PGHOST: searchParams.get('host') ?? (hostname === '' ? null : decodeURIComponent(hostname).replace(/^\[|\]$/g, '')),
    PGPORT: searchParams.get('port') ?? (port === '' ? null : port),
    PGUSER: username === '' ? null : decodeURIComponent(username),
    PGPASSWORD: password === '' ? null : decodeURIComponent(password),
    PGDATABASE: pathname.length > 1 ? decodeURIComponent(pathname.slice(1)) : null,
    // `no-verify` is a value of the Node.js driver. libpq's `require` also encrypts without verifying the certificate.
    PGSSLMODE: searchParams.get('sslmode')?.replace('no-verify', 'require') ?? (searchParams.get('ssl') === 'true' ? 'require' : null),
    PGSSLROOTCERT: searchParams.get('sslrootcert'),
    PGSSLCERT: searchParams.get('sslcert'),
    PGSSLKEY: searchParams.get('sslkey'),
    PGOPTIONS: searchParams.get('options'),
    PGAPPNAME: BACKUP_APPLICATION,
    PGCONNECT_TIMEOUT: CONNECT_TIMEOUT_SECONDS,
  };
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== null));
}

interface RunOptions {
  readonly url: string;
  readonly signal: AbortSignal;
}

/** Runs a program to its end. Throws {@link StartupError} with the program's last message after a failure. */
export async function runPostgresTool(path: string, args: readonly string[], { url, signal }: RunOptions): Promise<void> {
  const tool = start(path, args, url, signal);
  tool.child.stdin.end();
  tool.child.stdout.resume();
  await tool.ended;
}

interface LoadCommand {
  /** `pg_restore` with arguments for writing statements to standard output. */
  readonly restore: readonly [path: string, ...args: string[]];
  /** Path of `psql`. */
  readonly psql: string;
  readonly before: string;
  readonly after: string;
}

/** Pipes `before`, the output of `pg_restore` and `after` into one session of `psql`. `after` is sent only if `pg_restore` succeeded. */
export async function loadDump({ restore: [path, ...args], psql, before, after }: LoadCommand, { url, signal }: RunOptions): Promise<void> {
  const session = start(psql, ['--no-psqlrc', '--quiet', '--set=ON_ERROR_STOP=1', '--output=/dev/null', '--file=-'], url, signal);
  const source = start(path, args, url, signal);
  source.child.stdin.end();
  session.child.stdout.resume();
  const { stdin } = session.child;
  // A write fails if `psql` ended early. `session.ended` then rejects with the reason.
  stdin.on('error', () => {});
  const sendAll = async (): Promise<void> => {
    stdin.write(before);
    // Also fails if `psql` ended early.
    const piped = pipeline(source.child.stdout, stdin, { end: false }).catch(() => {});
    await source.ended;
    await piped;
    stdin.end(after);
  };
  const sending = sendAll();
  try {
    await Promise.race([session.ended, sending.then(() => session.ended)]);
    await sending;
  } finally {
    // `after` commits. If psql is killed before, the server rolls back.
    source.child.kill();
    session.child.kill();
    await Promise.allSettled([source.ended, session.ended, sending]);
  }
}

function start(path: string, args: readonly string[], url: string, signal: AbortSignal) {
  const child = spawn(path, args, { env: { ...process.env, ...connectionVariables(url) }, stdio: ['pipe', 'pipe', 'pipe'], signal });
  let messages = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    messages = (messages + text).slice(-MAX_MESSAGES);
  });
  // `close` is emitted afterwards, even if the program could not be started.
  child.on('error', (error) => {
    messages ||= error.message;
  });
  const ended = (async (): Promise<void> => {
    const [code, killedBy] = await new Promise<[number | null, string | null]>((resolve) => {
      child.once('close', (...end) => resolve(end));
    });
    signal.throwIfAborted();
    if (code === 0) return;
    const reason = messages.trim() === '' ? `it ended by ${killedBy ?? `exit code ${code}`}` : firstError(messages);
    throw new StartupError(`${path.split('/').at(-1)} failed: ${reason}`);
  })();
  // Prevents an unhandled rejection if the program ends before the caller awaits `ended`.
  ended.catch(() => {});
  return { child, ended };
}

/** The first error in the messages, because later errors are consequences. */
function firstError(messages: string): string {
  const lines = messages.trim().split('\n');
  return (lines.find((line) => /error:|ERROR:|FATAL:/.test(line)) ?? lines.at(-1) ?? '').replace(/^psql:[^:]*:\d+:\s*/, '');
}
