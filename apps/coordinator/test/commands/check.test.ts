/** The command `check` finds problems, and never prints secrets. */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import { type ProviderId, releaseBytes } from '@inference/protocol';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addressOf, closeServer, listenLocally } from '../../../../test/support/local-server.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { checkSqliteDriver } from '../../src/commands/check/database-checks.js';
import type { CheckResult } from '../../src/commands/check/finding.js';
import { openDatabase } from '../../src/database/connection/open-database.js';
import { sharedSecret } from '../../src/database/secret-repository.js';
import { LOG_KEY_SECRET, TransparencyLog } from '../../src/transparency-log/transparency-log.js';
import { runCommand } from '../support/command-run.js';
import { FakeStripe, STRIPE_KEY, WEBHOOK_SECRET } from '../support/fake-stripe.js';
import { migratedFile } from '../support/fresh-database.js';

const CONSOLE_DIR = new URL('../support/console', import.meta.url).pathname;
const stripe = new FakeStripe();
const smtp = new SMTPServer({
  logger: false,
  hideSTARTTLS: true,
  allowInsecureAuth: true,
  onAuth: ({ password }, _session, done) => done(password === 'hush' ? null : new Error('no'), { user: 'ada' }),
});
const other = createServer((_request, response) => response.end('{}'));
let stripeUrl: string;
let smtpUrl: string;
let dataDir: string;
const closers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  stripeUrl = await stripe.listen();
  await new Promise<void>((resolve) => smtp.listen(0, '127.0.0.1', resolve));
  smtpUrl = `smtp://ada:hush@${new URL(addressOf(smtp.server)).host}?tls=none`;
  await listenLocally(other);
  dataDir = temporaryDirectory('check');
  mkdirSync(join(dataDir, 'coordinator'), { mode: 0o700 });
  writeFileSync(join(dataDir, 'coordinator/coordinator.db'), await migratedFile());
});
afterAll(async () => {
  await stripe.close();
  await new Promise<void>((resolve) => smtp.close(resolve));
  await closeServer(other);
  for (const close of closers) await close();
});

async function check(env: Record<string, string>, ...options: string[]) {
  const run = await runCommand(['check', '--json', ...options], { DATA_DIR: dataDir, CONSOLE_DIR, PORT: '0', ...env });
  expect(run.out + run.err).not.toContain('hush');
  const { checks } = JSON.parse(run.out) as { checks: CheckResult[] };
  /** States and texts of a check. */
  const of = (name: string): string[] => checks.filter((found) => found.name === name).map(({ state, text }) => `${state} ${text}`);
  return { code: run.code, checks, of };
}

it('finds no problem in a complete configuration', async () => {
  stripe.isLive = true;
  stripe.webhookEndpoints.push({ url: 'https://gateway.example/webhooks/stripe', status: 'enabled', enabled_events: ['*'] });
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const release = {
    version: '0.2.0',
    platform: 'darwin-arm64' as const,
    url: 'https://e.example/a.tgz',
    sha256: 'a'.repeat(64),
    size: 1,
    node: '20.19.0',
    notes: '',
  };
  const signature = sign(null, releaseBytes(release), privateKey).toString('base64');
  const releases = join(dataDir, 'releases.json');
  writeFileSync(releases, JSON.stringify({ releases: [{ ...release, signature }] }));
  const [key, otherKey] = [publicKey, generateKeyPairSync('ed25519').publicKey].map((one) =>
    one.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64'),
  );
  const env = {
    PUBLIC_URL: 'https://gateway.example',
    TRUSTED_PROXIES: '127.0.0.1',
    SMTP_URL: smtpUrl,
    MAIL_FROM: 'no-reply@example.com',
    STRIPE_API_URL: stripeUrl,
    STRIPE_SECRET_KEY: STRIPE_KEY,
    STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
    AGENT_RELEASES: releases,
    ADMIN_KEY: `service-${'a'.repeat(43)}`,
  };
  const { code, checks, of } = await check(env, '--release-key', key ?? '');
  expect(checks.filter(({ state }) => state === 'problem')).toEqual([]);
  expect(code).toBe(0);
  expect(of('database')).toEqual([expect.stringMatching(/^ok SQLite, .*: read and written, schema \d{4}_/)]);
  expect(of('mail')).toEqual([expect.stringMatching(/^ok 127\.0\.0\.1:\d+ answers without TLS, the login works/)]);
  expect(of('payments')).toEqual([
    'ok Stripe accepts STRIPE_SECRET_KEY (live mode)',
    expect.stringMatching(/^ok Stripe sends every needed event/),
  ]);
  expect(of('releases')).toEqual(['ok 1 release, the newest is 0.2.0; every signature verifies']);
  expect(of('address')).toEqual(['ok 127.0.0.1:0 is free']);

  stripe.webhookEndpoints.splice(0, 1, {
    url: 'https://gateway.example/webhooks/stripe',
    status: 'enabled',
    enabled_events: ['charge.refunded'],
  });
  const worse = await check(
    { ...env, SMTP_URL: smtpUrl.replace('hush', 'wrong'), PORT: new URL(addressOf(other)).port, DATA_DIR: join(dataDir, 'releases.json') },
    '--release-key',
    otherKey ?? '',
  );
  expect(worse.code).toBe(1);
  expect(worse.of('mail')).toEqual([expect.stringMatching(/^problem .* refuses the user or password \(EAUTH\)$/)]);
  expect(worse.of('payments').at(-1)).toMatch(/^problem the webhook lacks checkout\.session\.completed/);
  expect(worse.of('releases')).toEqual(['problem agents refuse 0.2.0 for darwin-arm64: the signature is not of this key']);
  expect(worse.of('address')).toEqual([expect.stringMatching(/^problem .* is taken by another program$/)]);
  expect(worse.of('data directory')).toEqual([expect.stringMatching(/^problem .*releases\.json is not a folder$/)]);
  const wrongKey = await check({ ...env, STRIPE_SECRET_KEY: 'sk_hush', AGENT_RELEASES: join(dataDir, 'none') });
  expect(wrongKey.of('payments')).toEqual(['problem Stripe refuses STRIPE_SECRET_KEY']);
  expect(wrongKey.of('releases')).toEqual([expect.stringMatching(/none cannot be read: ENOENT$/)]);
});

it('warns of a database file on the Node versions on which the driver aborts', () => {
  const file = { dataDir, databaseUrl: null };
  const warned = ['20.19.0', '22.23.2', '24.18.0', '24.19.0', '24.21.3', '25.0.0', '26.1.0'].filter(
    (version) => checkSqliteDriver(file, version).length > 0,
  );
  expect(warned).toEqual(['24.19.0', '24.21.3', '25.0.0', '26.1.0']);
  expect(checkSqliteDriver(file, '24.19.0')).toEqual([
    { state: 'warning', text: expect.stringContaining('Node 24.19.0'), remedy: expect.stringContaining('Use Node 22, or 24.18') },
  ]);
  expect(checkSqliteDriver({ dataDir, databaseUrl: 'postgres://localhost/a' }, '24.19.0')).toEqual([]);
});

it('says how to trust an authority of one’s own, for each service', async () => {
  const [key, cert] = [join(dataDir, 'own.key'), join(dataDir, 'own.pem')];
  const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost'.split(' ');
  execFileSync('openssl', [...request, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  const identity = { key: readFileSync(key), cert: readFileSync(cert) };
  const secure = createTlsServer(identity).on('tlsClientError', () => {});
  // PostgreSQL's answer to SSLRequest, then TLS.
  const database = createTcpServer((socket) => {
    socket
      .on('error', () => {})
      .once('data', () => {
        socket.write('S');
        new TLSSocket(socket, { isServer: true, ...identity }).on('error', () => {});
      });
  });
  try {
    await listenLocally(secure);
    await listenLocally(database);
    const { host, port } = new URL(addressOf(secure));
    const { checks } = await check({
      SMTP_URL: `smtps://ada:hush@localhost:${port}`,
      MAIL_FROM: 'no-reply@example.com',
      STRIPE_API_URL: `https://${host}`,
      STRIPE_SECRET_KEY: STRIPE_KEY,
      STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
      DATABASE_URL: `postgres://ada:hush@localhost:${new URL(addressOf(database)).port}/gateway?sslmode=verify-full`,
    });
    const advice = (name: string): string => {
      const found = checks.find((one) => one.name === name && one.state === 'problem');
      return `${found?.text} ${found?.remedy}`;
    };
    for (const name of ['mail', 'payments', 'database'])
      expect([name, advice(name)]).toEqual([name, expect.stringContaining('NODE_EXTRA_CA_CERTS')]);
  } finally {
    secure.close();
    database.close();
  }
});

it('lists every setting that cannot be used, once, without consequences', async () => {
  const { code, checks, of } = await check({
    PORT: '99999',
    DEVELOPMENT: 'maybe',
    DATABASE_URL: 'mysql://u:hush@h',
    NATS_URL: 'nats://127.0.0.1:4222',
    STRIPE_SECRET_KEY: 'hush',
    AUTH_SECRET: 'hush',
    ADMIN_KEY: 'hush',
    ADMIN_KEY_FILE: '/nowhere',
  });
  expect(code).toBe(2);
  const named = checks.filter(({ state }) => state === 'problem').map(({ text }) => /^[A-Z_]+/.exec(text)?.[0]);
  expect(named.sort()).toEqual(['ADMIN_KEY', 'ADMIN_KEY_FILE', 'AUTH_SECRET', 'DATABASE_URL', 'DEVELOPMENT', 'PORT', 'STRIPE_SECRET_KEY']);
  expect(of('other checks')).toEqual(['skipped the settings come first']);
});

it('recognises the coordinator at PUBLIC_URL by its log, whose checkpoint may be older than the database', async () => {
  const append = (log: TransparencyLog, name: string) => log.append({ v: 1, kind: 'revoked', provider_id: name as ProviderId, since: 1 });
  const folder = temporaryDirectory('check-log');
  // A fork has the origin and key of the log, as after the restore of an older backup.
  const [log, fork, other] = await Promise.all([
    openLog(folder, 1),
    openLog(temporaryDirectory('fork'), 1),
    openLog(temporaryDirectory('other'), 2),
  ]);
  const empty = await log.checkpoint();
  await append(log, 'one');
  const one = await log.checkpoint();
  await append(log, 'two');
  await append(fork, 'another');
  let served = '';
  const publicServer = createServer((_request, response) => response.end(served));
  const env = { DATA_DIR: folder, PUBLIC_URL: await listenLocally(publicServer) };
  const found = async (checkpoint: string) => {
    served = checkpoint;
    return (await check(env, '--public')).of('public address');
  };
  try {
    for (const own of [empty, one, await log.checkpoint()]) expect(await found(own)).toEqual([expect.stringMatching(/^ok /)]);
    for (const foreign of [await fork.checkpoint(), await other.checkpoint(), one.replace(/\n\n.*/s, '\n'), '<html></html>'])
      expect(await found(foreign)).toEqual([expect.stringMatching(/^problem .* is answered by another coordinator or program$/)]);
  } finally {
    await closeServer(publicServer);
  }
});

/** Log of a coordinator's data directory. Its private key is derived from `seed`. */
async function openLog(folder: string, seed: number): Promise<TransparencyLog> {
  const file = join(folder, 'coordinator/coordinator.db');
  mkdirSync(join(folder, 'coordinator'));
  writeFileSync(file, await migratedFile());
  const database = await openDatabase({ file });
  closers.push(() => database.destroy());
  await sharedSecret(database, LOG_KEY_SECRET, new Uint8Array(32).fill(seed));
  return TransparencyLog.open({ database, origin: 'a.example/e2e/log', witnesses: [], quorum: 0, onWitnessFailure: () => {} });
}

it('names settings of the file that have no effect, and files that others can read', async () => {
  const file = join(dataDir, 'settings.env');
  writeFileSync(file, 'STRPIE_SECRET_KEY=hush\nMDM_TOPIC=com.apple.mgmt.a\nPGSSLMODE=prefer\nNODE_EXTRA_CA_CERTS=/ca.pem\n', {
    mode: 0o644,
  });
  const { of } = await check({}, '--env-file', file);
  expect(of('settings')).toEqual([
    expect.stringContaining('warning NODE_EXTRA_CA_CERTS in the settings file has no effect on this command'),
    'warning MDM_TOPIC in the settings file has no effect',
    'warning STRPIE_SECRET_KEY in the settings file has no effect',
  ]);
  expect(of('secrets')).toEqual([`warning ${file} can be read or changed by every user of this machine`]);
  expect(of('payments')).toEqual([expect.stringMatching(/^warning no payments/)]);
  expect(of('operators')).toEqual(['warning no account has the admin flag']);
});
