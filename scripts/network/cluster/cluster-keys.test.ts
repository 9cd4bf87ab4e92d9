/** Permissions on real NATS servers: a coordinator can neither send as another coordinator nor read its messages. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readClusterSettings } from '../../../apps/coordinator/src/cluster/settings.js';
import { NatsTransport } from '../../../apps/coordinator/src/cluster/transport/nats-transport.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { type ClusterFiles, writeClusterFiles } from './cluster-keys.js';
import { freePorts } from './free-ports.js';
import { findPrograms } from './installed-programs.js';
import { type NatsAddress, parseServers } from './nats-config.js';

const directory = temporaryDirectory('cluster-keys');
const children: ChildProcess[] = [];
const transports: NatsTransport[] = [];
const events: string[] = [];
let servers: NatsAddress[];
let files: ClusterFiles;

beforeAll(async () => {
  const ports = await freePorts(6);
  servers = [0, 1, 2].map((index) => {
    return { host: '127.0.0.1', port: ports[index] as number, clusterPort: ports[index + 3] as number, monitorPort: null };
  });
  files = await writeClusterFiles(directory, 3, servers);
  for (const config of files.natsConfigs) children.push(spawn(findPrograms().natsServer, ['-c', config], { stdio: 'ignore' }));
});
afterAll(async () => {
  await Promise.all(transports.map((transport) => transport.close()));
  for (const child of children) child.kill('SIGKILL');
});

/** A transport with the keys of a coordinator, connected to one of the servers. */
async function connect(coordinator: number, server: number): Promise<NatsTransport> {
  const settings = readClusterSettings({ ...files.coordinators[coordinator]?.env, DATABASE_URL: 'postgres://x' });
  const url = settings?.servers[server];
  if (settings === null || url === undefined || settings.nkeySeed === null || settings.certificateAuthorityFile === null) throw new Error();
  const transport = new NatsTransport({
    servers: [url],
    name: settings.id,
    nkeySeed: settings.nkeySeed,
    tls: { caFile: settings.certificateAuthorityFile },
    log: ({ event, reason }) => events.push(`${settings.id} ${event} ${reason ?? ''}`),
  });
  transports.push(transport);
  await expect.poll(() => transport.isConnected, { timeout: 20_000 }).toBe(true);
  return transport;
}

/** Payloads that arrive on a subject. */
function received(transport: NatsTransport, subject: string): string[] {
  const texts: string[] = [];
  transport.subscribe(subject, (from, payload, isNoResponders) => {
    texts.push(isNoResponders ? `nobody at ${from}` : `${from} ${Buffer.from(payload).toString()}`);
  });
  return texts;
}

test('a key publishes only as its coordinator, and reads only its own messages', async () => {
  const [one, two, three] = [await connect(0, 0), await connect(1, 1), await connect(2, 2)];
  const atOne = received(one, 'coordinator.coordinator-1.in.*');
  const broadcastsAtTwo = received(two, 'fleet.digest.*');
  const atTwo = received(two, 'coordinator.coordinator-2.in.*');
  const overheard = [received(three, 'coordinator.coordinator-2.in.*'), received(three, 'coordinator.>'), received(three, '>')].map(
    (texts) => texts,
  );
  const send = (from: NatsTransport, subject: string, text: string): boolean => from.publish(subject, Buffer.from(text));

  // Forged messages first: messages of one publisher keep their order.
  const arrived = async (): Promise<boolean> => {
    send(three, 'coordinator.coordinator-2.in.coordinator-1', 'forged');
    send(three, 'fleet.digest.coordinator-1', 'forged');
    send(three, 'fleet.digest.coordinator-1.more', 'forged');
    send(three, 'elsewhere', 'forged');
    send(three, 'coordinator.coordinator-2.in.coordinator-3', 'hello');
    send(three, 'fleet.digest.coordinator-3', 'alive');
    return atTwo.length > 0 && broadcastsAtTwo.length > 0;
  };
  await expect.poll(arrived, { timeout: 20_000, interval: 100 }).toBe(true);
  expect(new Set(atTwo)).toEqual(new Set(['coordinator.coordinator-2.in.coordinator-3 hello']));
  expect(new Set(broadcastsAtTwo)).toEqual(new Set(['fleet.digest.coordinator-3 alive']));
  expect(overheard).toEqual([[], [], []]);
  await expect
    .poll(() => events.filter((event) => /coordinator-3 server_error .*[Pp]ermission/.test(event)).length)
    .toBeGreaterThanOrEqual(3);

  // The server's answer for a subject without responders.
  one.publish('coordinator.nobody.in.coordinator-1', Buffer.from('hello'), 'coordinator.coordinator-1.in.nobody');
  await expect.poll(() => atOne).toEqual(['nobody at coordinator.coordinator-1.in.nobody']);
  expect(events.filter((event) => event.startsWith('coordinator-1 server_error'))).toEqual([]);
});

test('a client without a key of the cluster is refused', async () => {
  const stranger = await writeClusterFiles(mkdtempSync(join(directory, 'stranger-')), 1, servers);
  const seed = readFileSync(stranger.coordinators[0]?.env.NATS_NKEY_FILE ?? '', 'utf8').trim();
  const refusals: string[] = [];
  const [, caFile = ''] = [stranger, join(directory, 'ca.pem')];
  const options = { servers: [`tls://127.0.0.1:${servers[0]?.port}`], name: 'stranger', tls: { caFile } };
  for (const credentials of [{ nkeySeed: seed }, {}]) {
    transports.push(new NatsTransport({ ...options, ...credentials, log: ({ event, reason }) => refusals.push(`${event} ${reason}`) }));
  }
  await expect
    .poll(() => refusals.filter((text) => /dial_failed .*uthorization/.test(text)).length, { timeout: 20_000 })
    .toBeGreaterThan(1);
  expect(refusals.some((text) => text.startsWith('connected'))).toBe(false);
});

test('all files are private, and a second run keeps keys', async () => {
  const own = join(directory, 'again');
  const addresses = parseServers('nats-1.example:4222,[::1]:4223');
  const first = await writeClusterFiles(own, 3, addresses);
  const read = (name: string): string => readFileSync(join(own, name), 'utf8');
  const before = ['ca.pem', 'ca.key', 'coordinator-1.nk', 'coordinator-2.nk'].map(read);
  writeFileSync(join(own, 'notes.txt'), 'kept');
  await writeClusterFiles(own, 2, addresses);
  expect(['ca.pem', 'ca.key', 'coordinator-1.nk', 'coordinator-2.nk'].map(read)).toEqual(before);
  const names = readdirSync(own);
  expect(names).toContain('notes.txt');
  expect(names.filter((name) => name.startsWith('coordinator-3'))).toEqual([]);
  for (const name of names.filter((text) => text !== 'notes.txt'))
    expect([name, statSync(join(own, name)).mode & 0o777]).toEqual([name, 0o600]);
  expect(statSync(own).mode & 0o777).toBe(0o700);
  expect(first.coordinators[0]?.env).toEqual({
    NATS_URL: 'tls://nats-1.example:4222,tls://[::1]:4223',
    COORDINATOR_ID: 'coordinator-1',
    NATS_NKEY_FILE: join(own, 'coordinator-1.nk'),
    NATS_CA_FILE: join(own, 'ca.pem'),
  });
  expect(read('coordinator-1.env')).toBe(
    Object.entries(first.coordinators[0]?.env ?? {})
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  expect(read('nats-1.conf')).toContain('listen: "0.0.0.0:4222"');
  expect(read('nats-1.conf')).toContain('nats-route://[::1]:6223');
});

test.each(['', 'host', 'host:0', 'host:70000', 'host:4222,host:4222', 'ho st:1', 'nats://host:4222'])('refuses the servers %j', (text) => {
  expect(() => parseServers(text)).toThrow(/--servers/);
});
