/** Settings of a coordinator in a cluster, from the environment. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { errorReason, StartupError } from '../config/startup-error.js';

export interface ClusterSettings {
  /** Name of this coordinator in subjects, logs and metrics. */
  readonly id: string;
  /** `nats://host:port` or `tls://host:port`. */
  readonly servers: readonly string[];
  /** Seed of the nkey that authenticates this coordinator; null: none. */
  readonly nkeySeed: string | null;
  /** PEM file of the certificate authority of the servers; null: the system's. */
  readonly certificateAuthorityFile: string | null;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Null without `NATS_URL`. Throws StartupError. */
export function readClusterSettings(env: Environment): ClusterSettings | null {
  const servers = (env.NATS_URL ?? '')
    .split(',')
    .map((url) => url.trim())
    .filter((url) => url !== '');
  if (servers.length === 0) return null;
  // A URL may contain a password, so the message does not repeat the value.
  for (const url of servers) {
    if (!/^(nats|tls):\/\//.test(url) || !URL.canParse(url)) {
      throw new StartupError('NATS_URL must be addresses such as nats://host:4222 or tls://host:4222, separated by commas.');
    }
  }
  if ((env.DATABASE_URL ?? '') === '') {
    throw new StartupError(
      'NATS_URL needs PostgreSQL: set DATABASE_URL. Coordinators of one cluster share one database, and an SQLite file belongs to one process.',
    );
  }
  const id = env.COORDINATOR_ID || randomBytes(8).toString('hex');
  if (!/^[a-z0-9-]{1,32}$/.test(id)) throw new StartupError('COORDINATOR_ID must be 1 to 32 lowercase letters, digits and hyphens.');
  const seed = readFile(env, 'NATS_NKEY_FILE');
  if (seed !== null && !/^SU[A-Z2-7]{56}$/.test(seed.trim())) {
    throw new StartupError('NATS_NKEY_FILE must contain the seed of a user nkey, which begins with SU.');
  }
  return { id, servers, nkeySeed: seed?.trim() ?? null, certificateAuthorityFile: readablePath(env, 'NATS_CA_FILE') };
}

function readFile(env: Environment, name: string): string | null {
  const path = env[name];
  if (path === undefined || path === '') return null;
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartupError(`${name} cannot be read: ${errorReason(error)}.`);
  }
}

function readablePath(env: Environment, name: string): string | null {
  return readFile(env, name) === null ? null : (env[name] ?? null);
}
