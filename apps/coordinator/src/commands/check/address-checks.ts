/** Address part of the command `check`: HOST and PORT (where the coordinator listens), and PUBLIC_URL (what clients use). */
import { createServer } from 'node:net';
import type { Config } from '../../config/config.js';
import { errorReason } from '../../config/startup-error.js';
import type { Database } from '../../database/tables.js';
import { withDatabase } from '../command-database.js';
import { type Finding, ok, problem, unreachable, warning } from './finding.js';

/** Reports a problem unless HOST and PORT are free, or a running coordinator answers there. */
export async function checkListenAddress({ host, port }: Config, signal: AbortSignal): Promise<Finding[]> {
  const reason = await bindErrorCode(host, port);
  const place = `${host}:${port}`;
  if (reason === null) return [ok(`${place} is free`)];
  if (reason !== 'EADDRINUSE')
    return [problem(`${place} cannot be used: ${reason}`, 'Correct HOST or PORT; ports below 1024 need a privilege.')];
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host;
  const answer = await readReadiness(`http://${reachable}:${port}`, signal);
  return [answer === null ? problem(`${place} is taken by another program`, 'Set another PORT, or stop that program.') : answer];
}

/** Error code of an attempt to listen, such as EADDRINUSE; null: listening works. */
function bindErrorCode(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(errorReason(error)));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

/** Finding about a coordinator that answers `/health/ready` at the address. Null: no coordinator answers. */
async function readReadiness(origin: string, signal: AbortSignal): Promise<Finding | null> {
  try {
    const response = await fetch(`${origin}/health/ready`, { signal, redirect: 'manual' });
    const { status, reason } = (await response.json()) as { status?: unknown; reason?: unknown };
    if (status === 'ready') return ok(`a coordinator runs at ${origin} and is ready`);
    return status === 'not_ready'
      ? warning(`a coordinator runs at ${origin} and is not ready: ${String(reason)}`, 'See docs/operating.md#health.')
      : null;
  } catch {
    return null;
  }
}

/**
 * Checks that PUBLIC_URL leads to a coordinator of this database.
 *
 * Compares the transparency-log checkpoint served at PUBLIC_URL with the log in the database.
 */
export async function checkPublicAddress(config: Config, signal: AbortSignal): Promise<Finding[]> {
  const { publicOrigin } = config.console;
  if (publicOrigin === null)
    return [problem('PUBLIC_URL is not set', 'Set the address that clients use, such as https://gateway.example.')];
  const logOrigin = await withDatabase(config, readLogOrigin);
  if (logOrigin === null) return [problem('no coordinator has run with this database yet', 'Start it: inference-coordinator serve')];
  let checkpoint: string;
  try {
    const response = await fetch(`${publicOrigin}/e2e/log/checkpoint`, { signal, redirect: 'manual' });
    checkpoint = (await response.text()).slice(0, 10_000);
    if (!response.ok)
      return [
        problem(
          `${publicOrigin} answers with status ${response.status}`,
          'Start the coordinator, and let the proxy pass every path to it.',
        ),
      ];
  } catch (error) {
    return [unreachable(publicOrigin, error, 'Check DNS, firewall, proxy and certificate.')];
  }
  const [line, size, root] = checkpoint.split('\n');
  const known = line === logOrigin && (await withDatabase(config, (database) => hasTree(database, Number(size), root ?? '')));
  if (!known)
    return [problem(`${publicOrigin} is answered by another coordinator or program`, 'Point the proxy to HOST and PORT of this one.')];
  return [ok(`${publicOrigin} leads to this coordinator${publicOrigin.startsWith('https:') ? ', with a valid certificate' : ''}`)];
}

async function readLogOrigin(database: Database): Promise<string | null> {
  const row = await database.selectFrom('log_heads').select('origin').executeTakeFirst();
  return row?.origin ?? null;
}

/** Whether the log in the database may have published this tree. `root` (base64) is compared only for the current size. */
async function hasTree(database: Database, size: number, root: string): Promise<boolean> {
  const row = await database.selectFrom('log_heads').select(['published_size', 'published_root']).executeTakeFirst();
  if (row === undefined || !Number.isSafeInteger(size)) return false;
  if (size === row.published_size) return Buffer.from(root, 'base64').toString('hex') === row.published_root;
  return size < row.published_size;
}
