/**
 * Program that simulates managed Macs: a management server and an ACME server on one certificate authority.
 *
 * A parent process with an IPC channel receives {@link SimulationFacts}. `{coordinator: url}` or COORDINATOR_URL names the coordinator.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AcmeServer } from './acme/acme-server.js';
import { SimulatedAuthority } from './certificate-authority/authority.js';
import { ManagementServer } from './management-server/management-server.js';

export interface SimulationFacts {
  /** Environment variables that connect a coordinator to the simulation. */
  readonly coordinator_env: Readonly<Record<string, string>>;
  /** Address of the management server, where simulated Macs install profiles. */
  readonly management_url: string;
}

/** Time for pending reports after a stop request, in milliseconds. */
const MAX_SHUTDOWN_MS = 2000;

/** Placeholder: reports fail until a coordinator is named. */
const UNREACHABLE_URL = 'http://127.0.0.1:9';

async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const directory = resolve(env.DATA_DIR || '.data/device-simulation');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const authority = SimulatedAuthority.load(readOrCreate(join(directory, 'authority.json'), newAuthority));
  const rootFile = join(directory, 'root.pem');
  writeFileSync(rootFile, authority.rootPem, { mode: 0o600 });
  const apiKey = readOrCreate(join(directory, 'api-key'), newSecret);
  const secret = readOrCreate(join(directory, 'webhook-secret'), newSecret);

  const management = await ManagementServer.start({
    authority,
    apiKey,
    webhook: { url: UNREACHABLE_URL, secret },
    port: port(env.PORT),
    stateFile: join(directory, 'macs.json'),
  });
  const acme = await AcmeServer.start({ hook: { url: UNREACHABLE_URL, secret }, port: port(env.ACME_PORT) });
  const reportTo = (coordinator: string): void => {
    management.webhook = { url: `${coordinator}/mdm/v1/webhook`, secret };
    acme.hook = { url: `${coordinator}/mdm/v1/acme`, secret };
  };
  if (env.COORDINATOR_URL) reportTo(env.COORDINATOR_URL.replace(/\/+$/, ''));

  const facts: SimulationFacts = {
    management_url: management.url,
    coordinator_env: {
      SIMULATED_DEVICE_AUTHORITY: rootFile,
      MDM_URL: management.url,
      MDM_API_KEY: apiKey,
      MDM_WEBHOOK_SECRET: secret,
      MDM_TOPIC: 'com.apple.mgmt.External.simulated',
      MDM_ACME_DIRECTORY_URL: acme.directoryUrl,
    },
  };
  // Secrets go over IPC or are read from the data directory, never to the output.
  process.stdout.write(`${JSON.stringify({ management_url: management.url, data_dir: directory })}\n`);
  process.send?.(facts);
  process.on('message', (message: { readonly coordinator?: unknown }) => {
    if (typeof message.coordinator !== 'string') return;
    reportTo(message.coordinator);
    process.send?.({ coordinator: message.coordinator });
  });

  const end = (): void => {
    // `close` waits for pending reports, which a stopped coordinator never accepts.
    setTimeout(() => process.exit(0), MAX_SHUTDOWN_MS);
    void Promise.all([management.close(), acme.close()]).then(() => process.exit(0));
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'disconnect'] as const) process.on(signal, end);
}

/** Reads a file. A missing file is first created with the content of `make`. */
function readOrCreate(file: string, make: () => string): string {
  if (!existsSync(file)) writeFileSync(file, make(), { mode: 0o600, flag: 'wx' });
  return readFileSync(file, 'utf8');
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

function newAuthority(): string {
  return SimulatedAuthority.create({ now: Date.now(), random: (bytes) => new Uint8Array(randomBytes(bytes)) }).save();
}

/** 0, where the setting is absent, lets the system choose. */
function port(text: string | undefined): number {
  const number = Number(text || 0);
  if (!Number.isInteger(number) || number < 0 || number > 65_535) throw new RangeError('a port is a whole number from 0 to 65535');
  return number;
}

main(process.env).catch((error: unknown) => {
  process.stderr.write(`The device simulation cannot start: ${error instanceof Error ? error.message : 'unknown'}\n`);
  process.exit(1);
});
