/**
 * `writeClusterFiles`: writes configuration and keys of a cluster's NATS servers, and an environment file per coordinator.
 *
 * A second run in the same directory keeps the certificate authority and the nkeys (NATS key pairs) of the named coordinators, and renews the server
 * certificates.
 */
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createUser, fromSeed } from '@nats-io/nkeys';
import { makeDirectory } from '../directory.js';
import { CertificateAuthority } from './certificate-authority.js';
import { type CoordinatorUser, hostInUrl, isLoopback, type NatsAddress, natsServerConfig } from './nats-config.js';

export interface ClusterFiles {
  readonly directory: string;
  /** `nats-server` configuration files, in the order of the servers. */
  readonly natsConfigs: readonly string[];
  readonly coordinators: readonly CoordinatorFiles[];
}

export interface CoordinatorFiles {
  readonly id: string;
  readonly envFile: string;
  /** Contents of `envFile`. */
  readonly env: Readonly<Record<string, string>>;
}

export async function writeClusterFiles(
  directory: string,
  coordinatorCount: number,
  servers: readonly NatsAddress[],
): Promise<ClusterFiles> {
  const now = Date.now();
  makeDirectory(directory);
  chmodSync(directory, 0o700);
  const authorityFile = join(directory, 'ca.pem');
  const authority = await loadOrCreateAuthority(authorityFile, join(directory, 'ca.key'), now);
  const ids = Array.from({ length: coordinatorCount }, (_, index) => `coordinator-${index + 1}`);
  const users = ids.map((id): CoordinatorUser => ({ id, nkey: loadOrCreateNkey(nkeyFile(directory, id)) }));
  const natsConfigs: string[] = [];
  for (const [index, server] of servers.entries()) {
    const number = index + 1;
    const name = join(directory, `nats-${number}`);
    const { key, certificate } = await authority.issue(certificateHosts(server.host), now);
    writePrivateFile(`${name}.key`, key);
    writePrivateFile(`${name}.pem`, certificate);
    const files = { authority: authorityFile, certificate: `${name}.pem`, key: `${name}.key` };
    writePrivateFile(`${name}.conf`, natsServerConfig({ number, servers, users, files }));
    natsConfigs.push(`${name}.conf`);
  }
  const natsUrl = servers.map(({ host, port }) => `tls://${hostInUrl(host)}:${port}`).join(',');
  const coordinators = ids.map((id): CoordinatorFiles => {
    const env = { NATS_URL: natsUrl, COORDINATOR_ID: id, NATS_NKEY_FILE: nkeyFile(directory, id), NATS_CA_FILE: authorityFile };
    const envFile = join(directory, `${id}.env`);
    writePrivateFile(
      envFile,
      Object.entries(env)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    );
    return { id, envFile, env };
  });
  removeSurplus(directory, new Set([...ids, ...servers.map((_, index) => `nats-${index + 1}`)]));
  return { directory, natsConfigs, coordinators };
}

/** Removes files of coordinators and servers beyond the requested counts. A later run must not reuse the nkey of a removed coordinator. */
function removeSurplus(directory: string, names: ReadonlySet<string>): void {
  for (const file of readdirSync(directory)) {
    const name = /^((?:coordinator|nats)-\d+)\.(?:env|nk|conf|key|pem)$/.exec(file)?.[1];
    if (name !== undefined && !names.has(name)) rmSync(join(directory, file));
  }
}

async function loadOrCreateAuthority(certificateFile: string, keyFile: string, now: number): Promise<CertificateAuthority> {
  if (existsSync(keyFile) && existsSync(certificateFile)) {
    return CertificateAuthority.load({ key: readFileSync(keyFile, 'utf8'), certificate: readFileSync(certificateFile, 'utf8') });
  }
  const authority = await CertificateAuthority.create(now);
  writePrivateFile(keyFile, authority.pem.key);
  writePrivateFile(certificateFile, authority.pem.certificate);
  return authority;
}

/** Public nkey of the coordinator whose seed is in `file`. */
function loadOrCreateNkey(file: string): string {
  if (existsSync(file)) return fromSeed(new TextEncoder().encode(readFileSync(file, 'utf8').trim())).getPublicKey();
  const pair = createUser();
  writePrivateFile(file, `${new TextDecoder().decode(pair.getSeed())}\n`);
  return pair.getPublicKey();
}

function nkeyFile(directory: string, id: string): string {
  return join(directory, `${id}.nk`);
}

function certificateHosts(host: string): readonly string[] {
  return isLoopback(host) ? [host, 'localhost', '127.0.0.1'] : [host];
}

function writePrivateFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
