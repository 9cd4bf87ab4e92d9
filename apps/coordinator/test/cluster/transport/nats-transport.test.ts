import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { nkeys } from '@nats-io/nats-core';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { freePorts } from '../../../../../scripts/network/cluster/free-ports.js';
import { TcpProxy } from '../../../../../test/support/tcp-proxy.js';
import { temporaryDirectory } from '../../../../../test/support/temporary-directory.js';
import { PeerLinks } from '../../../src/cluster/link/peer-links.js';
import type { TransportEvent } from '../../../src/cluster/transport/cluster-transport.js';
import { NatsTransport, type NatsTransportOptions } from '../../../src/cluster/transport/nats-transport.js';
import { hasNatsServer, type NatsServer, startNats } from '../../support/nats-server.js';
import { Recorder } from '../link-fixture.js';

const EMPTY = new Uint8Array(0);
const cleanups: (() => unknown)[] = [];
const waitFor = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 30_000 });

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(config?: string, port?: number): Promise<NatsServer> {
  const server = await startNats(config, port);
  cleanups.push(() => server.close());
  return server;
}

function connect(servers: readonly string[], options: Partial<NatsTransportOptions> = {}) {
  const events: TransportEvent[] = [];
  const transport = new NatsTransport({ servers, name: 'test', log: (event) => events.push(event), ...options });
  cleanups.push(() => transport.close());
  return { transport, events };
}

/** Two coordinators with links, `b` echoing streams. */
async function coordinators(serversOfA: readonly string[], serversOfB: readonly string[]) {
  const a = connect(serversOfA);
  const b = connect(serversOfB);
  const linksOfA = new PeerLinks({ self: 'a', transport: a.transport, log: () => {} });
  const linksOfB = new PeerLinks({ self: 'b', transport: b.transport, log: () => {} });
  cleanups.push(
    () => linksOfA.close(),
    () => linksOfB.close(),
  );
  linksOfB.onStream('echo', (stream) => ({
    onMessage: (bytes, isText) => void stream.send(Uint8Array.from(bytes), isText),
    onClosed: () => {},
  }));
  const link = linksOfA.link('b');
  await waitFor(() => expect(link.state).toBe('up'));
  return { a, b, link };
}

const describeWithServer = hasNatsServer() ? describe : describe.skip;

describeWithServer('with a nats-server', () => {
  it('reaches a server whose greeting takes longer than the first time for a connection', async () => {
    const server = await serve();
    const proxy = await TcpProxy.start(`http://127.0.0.1:${server.port}`, { isWebSocket: false });
    cleanups.push(() => proxy.close());
    // Connecting takes three times the delay: greeting, login and its reply.
    proxy.delay(900);
    const { transport, events } = connect([proxy.address.replace('http', 'nats')]);
    await waitFor(() => expect(transport.isConnected).toBe(true));
    expect([events[0]?.event, events.at(-1)?.event]).toEqual(['dial_failed', 'connected']);
  });

  it('delivers in order, refuses payloads over the maximum, and reports that nobody subscribes', async () => {
    const server = await serve();
    const { transport: a } = connect([server.url]);
    const { transport: b } = connect([server.url]);
    const got: string[] = [];
    b.subscribe('coordinator.b.in.*', (subject, payload) => got.push(`${subject}:${Buffer.from(payload).toString()}`));
    const missing: string[] = [];
    a.subscribe('coordinator.a.in.*', (subject, _payload, isNoResponders) => {
      if (isNoResponders) missing.push(subject);
    });
    await waitFor(() => expect([a.isConnected, b.isConnected]).toEqual([true, true]));
    await waitFor(() => {
      a.publish('coordinator.b.in.a', Buffer.from('first'));
      expect(got.length).toBeGreaterThan(0);
    });
    got.length = 0;
    for (let count = 0; count < 1_000; count++) expect(a.publish('coordinator.b.in.a', Buffer.from(String(count)))).toBe(true);
    await waitFor(() => expect(got.at(-1)).toBe('coordinator.b.in.a:999'));
    expect(got.filter((each) => !each.endsWith('first')).map((each) => Number(each.split(':')[1]))).toEqual([...Array(1_000).keys()]);
    expect(a.publish('coordinator.b.in.a', new Uint8Array(a.maxPayloadBytes + 1))).toBe(false);
    expect(a.publish('not a subject', EMPTY)).toBe(false);
    a.publish('coordinator.c.in.a', EMPTY, 'coordinator.a.in.c');
    await waitFor(() => expect(missing).toEqual(['coordinator.a.in.c']));
  });

  it('loses nothing of running streams when the server is killed and restarted', async () => {
    const server = await serve();
    const { link } = await coordinators([server.url], [server.url]);
    const recorder = new Recorder();
    const stream = link.openStream('echo', EMPTY, recorder);
    const send = (from: number): void => {
      for (let count = from; count < from + 500; count++) stream.send(Buffer.from(`${count} ${'x'.repeat(2_000)}`), true);
    };
    send(0);
    await waitFor(() => expect(recorder.messages.length).toBeGreaterThan(0));
    send(500);
    await server.stop('SIGKILL');
    send(1_000);
    await server.start();
    await waitFor(() => expect(recorder.messages.length).toBe(1_500));
    expect(recorder.texts.map((text) => Number(text.split(' ')[0]))).toEqual([...Array(1_500).keys()]);
    expect(recorder.ends).toEqual([]);
  });

  it('moves to another server of the cluster when its own is killed, or does not answer', async () => {
    const [portA = 0, portB = 0, routeA = 0, routeB = 0] = await freePorts(4);
    const cluster = (own: number, other: number): string =>
      `cluster { name: test, listen: "127.0.0.1:${own}", routes: ["nats://127.0.0.1:${other}"] }`;
    const first = await serve(cluster(routeA, routeB), portA);
    const second = await serve(cluster(routeB, routeA), portB);
    const { b, link } = await coordinators([second.url], [first.url, second.url]);
    const recorder = new Recorder();
    const stream = link.openStream('echo', EMPTY, recorder);
    let count = 0;
    const sendSome = async (): Promise<void> => {
      for (let each = 0; each < 200; each++) stream.send(Buffer.from(String(count++)), true);
      await waitFor(() => expect(recorder.messages.length).toBe(count));
    };
    await sendSome();
    for (let each = 0; each < 200; each++) stream.send(Buffer.from(String(count++)), true);
    await first.stop('SIGKILL');
    await sendSome();
    await waitFor(() => expect(b.transport.isConnected).toBe(true));
    expect(recorder.texts.map(Number)).toEqual([...Array(count).keys()]);
    expect([recorder.ends, link.counts.losses]).toEqual([[], 0]);
  });

  it('notices a server that has stopped answering, and dials again', async () => {
    const server = await serve();
    const { transport, events } = connect([server.url]);
    await waitFor(() => expect(transport.isConnected).toBe(true));
    server.signal('SIGSTOP');
    await waitFor(() => expect(events.at(-1)?.event).not.toBe('connected'));
    expect(events.some(({ reason }) => reason === 'the server does not answer')).toBe(true);
    server.signal('SIGCONT');
    await waitFor(() => expect(transport.isConnected).toBe(true));
  });

  it('proves the sender by TLS, nkeys and permissions: a peer cannot publish as another', async () => {
    const [userA, userB] = [nkeys.createUser(), nkeys.createUser()];
    const seed = (pair: typeof userA): string => Buffer.from(pair.getSeed()).toString();
    const permissions = (name: string): string =>
      `{ publish: ["fleet.*.${name}", "coordinator.*.in.${name}"], subscribe: ["fleet.>", "coordinator.${name}.in.>"] }`;
    const directory = temporaryDirectory('nats-keys');
    const [key, certificate] = [join(directory, 'key.pem'), join(directory, 'certificate.pem')];
    const request = [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=localhost',
    ];
    execFileSync('openssl', [...request, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate], {
      stdio: 'ignore',
      timeout: 60_000,
    });
    const secured = await serve(
      `tls { cert_file: "${certificate}", key_file: "${key}" }
authorization { users: [
  { nkey: ${userA.getPublicKey()}, permissions: ${permissions('a')} }
  { nkey: ${userB.getPublicKey()}, permissions: ${permissions('b')} }
] }`,
    );
    const tls = { caFile: certificate };
    const a = connect([secured.url], { tls, nkeySeed: seed(userA) });
    const b = connect([secured.url], { tls, nkeySeed: seed(userB) });
    const unknownUser = connect([secured.url], { tls, nkeySeed: seed(nkeys.createUser()) });
    const withoutCa = connect([secured.url], { tls: {}, nkeySeed: seed(userA) });
    const links = new PeerLinks({ self: 'a', transport: a.transport, log: () => {} });
    const others = new PeerLinks({ self: 'b', transport: b.transport, log: () => {} });
    cleanups.push(
      () => links.close(),
      () => others.close(),
    );
    others.onRequest('who', (_payload, { peer }) => Buffer.from(peer));
    expect(Buffer.from(await links.link('b').request('who', EMPTY, { timeoutMs: 20_000 })).toString()).toBe('a');
    const got: string[] = [];
    b.transport.subscribe('coordinator.b.in.>', (subject) => got.push(subject));
    a.transport.publish('coordinator.b.in.c', Buffer.from('forged'));
    await waitFor(() => expect(a.events.some(({ reason }) => reason?.includes('Permissions Violation') === true)).toBe(true));
    expect(got).not.toContain('coordinator.b.in.c');
    await waitFor(() => expect([unknownUser, withoutCa].map(({ events }) => events[0]?.event)).toEqual(['dial_failed', 'dial_failed']));
    expect(JSON.stringify(a.events)).not.toContain('forged');
    expect([unknownUser.transport.isConnected, withoutCa.transport.isConnected]).toEqual([false, false]);
  });

  it('refuses servers that take too small payloads, or have no TLS', async () => {
    const small = await serve('max_payload: 65536');
    const plain = await serve();
    const { events } = connect([small.url]);
    const { events: withTls } = connect([plain.url], { tls: {} });
    await waitFor(() =>
      expect([events[0]?.reason, withTls[0]?.reason]).toEqual([expect.stringContaining('max_payload'), expect.stringContaining('tls')]),
    );
  });
});

it('closes the sockets of failed dials', async () => {
  const sockets = new Set<Socket>();
  let dials = 0;
  // Accepts connections, but never sends a byte.
  const server = createServer((socket) => {
    dials++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => server.close());
  const address = server.address();
  const { transport } = connect([`127.0.0.1:${typeof address === 'object' ? address?.port : 0}`]);
  await waitFor(() => expect(dials).toBeGreaterThanOrEqual(3));
  await waitFor(() => expect(sockets.size).toBeLessThanOrEqual(1));
  await transport.close();
  await waitFor(() => expect(sockets.size).toBe(0));
});
