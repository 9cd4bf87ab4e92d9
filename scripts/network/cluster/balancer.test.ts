/** The balancer chooses ready coordinators in turn, forwards both directions, and reports each agent's coordinator. */
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Balancer } from './balancer.js';
import { freePorts } from './free-ports.js';

class Coordinator {
  isReady = true;
  readonly #server: Server;
  readonly #sockets: WebSocketServer;

  constructor(readonly name: string) {
    this.#server = createServer((request, response) => {
      response.statusCode = request.url === '/health/ready' && !this.isReady ? 503 : 200;
      response.setHeader('connection', request.url === '/health/ready' ? 'keep-alive' : 'close');
      response.end(this.name);
    });
    this.#sockets = new WebSocketServer({ server: this.#server });
    this.#sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(`${this.name} ${data}`)));
  }

  async listen(port = 0): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    return (this.#server.address() as { port: number }).port;
  }

  /** Stops reading, so that connections stay open after their clients have closed. */
  freeze(): void {
    for (const socket of this.#sockets.clients) socket.pause();
  }

  /** Closes all connections at once, as a killed process does. */
  async kill(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets.clients) socket.terminate();
    this.#server.closeAllConnections();
    await closed;
  }
}

let coordinators: Coordinator[];
let balancer: Balancer;
let changes = 0;

beforeEach(async () => {
  coordinators = ['one', 'two', 'three'].map((name) => new Coordinator(name));
  const backends = [];
  for (const coordinator of coordinators) backends.push({ name: coordinator.name, port: await coordinator.listen() });
  balancer = new Balancer(backends, () => changes++);
  await ready(3);
});
afterEach(async () => {
  await balancer.close();
  await Promise.all(coordinators.map((coordinator) => coordinator.kill().catch(() => {})));
});

async function ready(count: number): Promise<void> {
  await expect.poll(() => balancer.backends.filter(({ isReady }) => isReady).length, { timeout: 10_000 }).toBe(count);
}

const get = async (port: number): Promise<string> =>
  (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })).text();

test('clients get the ready coordinators in turn', async () => {
  const { port } = await balancer.listenForClients(0);
  const answers = [await get(port), await get(port), await get(port), await get(port)];
  expect(new Set(answers.slice(0, 3))).toEqual(new Set(['one', 'two', 'three']));
  expect(answers[3]).toBe(answers[0]);
  (coordinators[0] as Coordinator).isReady = false;
  await ready(2);
  expect(new Set([await get(port), await get(port), await get(port)])).toEqual(new Set(['two', 'three']));
});

test('a coordinator that refuses connections is skipped before a check finds out', async () => {
  const { port } = await balancer.listenForClients(0);
  await coordinators[1]?.kill();
  expect(new Set([await get(port), await get(port), await get(port)])).toEqual(new Set(['one', 'three']));
});

test('without a ready coordinator, clients wait for one', async () => {
  const { port } = await balancer.listenForClients(0);
  const ports = balancer.backends.map((backend) => backend.port);
  for (const coordinator of coordinators) await coordinator.kill();
  await ready(0);
  const answer = get(port);
  const back = new Coordinator('back');
  coordinators.push(back);
  await back.listen(ports[2]);
  expect(await answer).toBe('back');
});

test('an agent keeps its coordinator, and moves to the one with the fewest agents', async () => {
  const entrances = [await balancer.listenForAgent(0), await balancer.listenForAgent(1), await balancer.listenForAgent(1)];
  const sockets = entrances.map(({ port }) => new WebSocket(`ws://127.0.0.1:${port}/`));
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('open', resolve))));
  expect(entrances.map(({ backend }) => backend?.name)).toEqual(['one', 'two', 'two']);
  const echo = new Promise((resolve) => sockets[1]?.once('message', (data) => resolve(String(data))));
  sockets[1]?.send('hello');
  expect(await echo).toBe('two hello');

  const before = changes;
  const lost = new Promise((resolve) => sockets[0]?.once('close', resolve));
  await coordinators[0]?.kill();
  await lost;
  await expect.poll(() => entrances[0]?.backend).toBeNull();
  const again = new WebSocket(`ws://127.0.0.1:${entrances[0]?.port}/`);
  await new Promise((resolve) => again.once('open', resolve));
  expect(entrances[0]?.backend?.name).toBe('three');
  expect(changes).toBeGreaterThan(before);
  for (const socket of [...sockets, again]) socket.terminate();
});

test('a client that leaves closes its connection to the coordinator', async () => {
  const entrance = await balancer.listenForAgent(0);
  const socket = connect(entrance.port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nUpgrade: websocket\r\n');
  await expect.poll(() => entrance.backend?.name).toBe('one');
  socket.destroy();
  await expect.poll(() => entrance.backend).toBeNull();
});

test("an agent's HTTP connections do not say where its session is", async () => {
  const entrance = await balancer.listenForAgent(0);
  const kept = connect(entrance.port, '127.0.0.1');
  kept.write('GET / HTTP/1.1\r\nHost: coordinator\r\n\r\n');
  await new Promise((resolve) => kept.once('data', resolve));
  expect(entrance.backend).toBeNull();
  (coordinators[0] as Coordinator).isReady = false;
  await ready(2);
  const socket = new WebSocket(`ws://127.0.0.1:${entrance.port}/`);
  await new Promise((resolve) => socket.once('open', resolve));
  expect(entrance.backend?.name).toBe('two');
  kept.destroy();
  socket.terminate();
});

test('an agent that leaves a frozen coordinator is at its new one', async () => {
  const entrance = await balancer.listenForAgent(0);
  const open = async (): Promise<WebSocket> => {
    const socket = new WebSocket(`ws://127.0.0.1:${entrance.port}/`);
    await new Promise((resolve) => socket.once('open', resolve));
    return socket;
  };
  const first = await open();
  const [frozen] = coordinators as [Coordinator];
  frozen.freeze();
  frozen.isReady = false;
  await ready(2);
  first.terminate();
  await expect.poll(() => entrance.backend).toBeNull();
  expect(balancer.backends.map(({ agents }) => agents)).toEqual([0, 0, 0]);
  const second = await open();
  expect(entrance.backend?.name).toBe('two');
  second.terminate();
});

test('a taken port is an error', async () => {
  const { port } = await balancer.listenForClients(0);
  await expect(balancer.listenForClients(port)).rejects.toThrow(/EADDRINUSE/);
  expect(await freePorts(3)).toHaveLength(3);
});
