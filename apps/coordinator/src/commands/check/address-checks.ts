/** Address part of the command `check`: HOST and PORT, where the coordinator listens, and PUBLIC_URL, which clients use. */
import { createServer } from 'node:net';
import { equalBytes, LogFormatError, MAX_NOTE_LENGTH, openCheckpoint, parseNoteKey } from '@inference/protocol';
import { nodeLogCrypto, sha256 } from '@inference/protocol/crypto';
import { verifierKeyOf } from '../../backup/log-key.js';
import type { Config } from '../../config/config.js';
import { errorReason } from '../../config/startup-error.js';
import { publishedRoot } from '../../database/log-repository.js';
import type { Database } from '../../database/tables.js';
import { LOG_KEY_SECRET } from '../../transparency-log/transparency-log.js';
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
 * Checks that PUBLIC_URL leads to a coordinator of this database: the checkpoint that is served there must be of the log in the database.
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
    checkpoint = (await response.text()).slice(0, MAX_NOTE_LENGTH + 1);
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
  const isOurs = await withDatabase(config, (database) => isOfLog(database, logOrigin, checkpoint));
  if (!isOurs)
    return [problem(`${publicOrigin} is answered by another coordinator or program`, 'Point the proxy to HOST and PORT of this one.')];
  return [ok(`${publicOrigin} leads to this coordinator${publicOrigin.startsWith('https:') ? ', with a valid certificate' : ''}`)];
}

async function readLogOrigin(database: Database): Promise<string | null> {
  const row = await database.selectFrom('log_heads').select('origin').executeTakeFirst();
  return row?.origin ?? null;
}

/** Whether the log in the database has published the tree of this checkpoint, and its key signed it. */
async function isOfLog(database: Database, logOrigin: string, note: string): Promise<boolean> {
  const secrets = await database.selectFrom('secrets').selectAll().where('name', '=', LOG_KEY_SECRET).execute();
  const key = verifierKeyOf(logOrigin, secrets);
  if (key === null) return false;
  try {
    const { size, root } = openCheckpoint(nodeLogCrypto, note, parseNoteKey(sha256, key), []);
    // A coordinator may have published more entries since its answer.
    const published = await publishedRoot(database, sha256, size);
    return published !== null && equalBytes(root, published);
  } catch (error) {
    if (error instanceof LogFormatError) return false;
    throw error;
  }
}
