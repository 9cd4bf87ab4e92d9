/** `readClusterSettings`: settings of a coordinator that runs in a cluster (NATS_URL and others). */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { checked, type Environment, list, text } from '../config/environment.js';
import { errorReason, StartupError } from '../config/startup-error.js';

export interface ClusterSettings {
  /** Name of this coordinator in NATS subjects, logs and metrics. */
  readonly id: string;
  /** `nats://host:port` or `tls://host:port`. */
  readonly servers: readonly string[];
  /** Seed of the nkey (NATS Ed25519 key) that authenticates this coordinator; null: no nkey. */
  readonly nkeySeed: string | null;
  /** PEM file of the certificate authority of the NATS servers; null: TLS is not required. */
  readonly certificateAuthorityFile: string | null;
}

/** Null without `NATS_URL`: the coordinator runs alone. Throws StartupError for an invalid setting. */
export function readClusterSettings(env: Environment): ClusterSettings | null {
  const servers = list(env, 'NATS_URL');
  if (servers.length === 0) return null;
  // A URL may contain a password, so the message does not repeat the value.
  if (!servers.every((url) => /^(nats|tls):\/\//.test(url) && URL.canParse(url))) {
    throw new StartupError('NATS_URL must be addresses such as nats://host:4222 or tls://host:4222, separated by commas.');
  }
  if (text(env, 'DATABASE_URL') === null) {
    throw new StartupError(
      'NATS_URL needs PostgreSQL: set DATABASE_URL. Coordinators of one cluster share one database, and an SQLite file belongs to one process.',
    );
  }
  const isId = (value: string): boolean => /^[a-z0-9-]{1,32}$/.test(value);
  const id = checked(env, 'COORDINATOR_ID', isId, 'be 1 to 32 lowercase letters, digits and hyphens') ?? randomBytes(8).toString('hex');
  return { id, servers, nkeySeed: nkeySeed(env, 'NATS_NKEY_FILE'), certificateAuthorityFile: text(env, 'NATS_CA_FILE') };
}

function nkeySeed(env: Environment, name: string): string | null {
  const path = text(env, name);
  if (path === null) return null;
  let seed: string;
  try {
    seed = readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new StartupError(`${name} cannot be read: ${errorReason(error)}.`, { cause: error });
  }
  if (!/^SU[A-Z2-7]{56}$/.test(seed)) throw new StartupError(`${name} must contain the seed of a user nkey, which begins with SU.`);
  return seed;
}
