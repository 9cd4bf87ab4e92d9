import { once } from 'node:events';
import { Agent, type IncomingMessage, request as send } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
import { type Harness, MODEL, until } from '../support/harness.js';
import { type ScriptedJob, ScriptedProvider } from '../support/scripted-provider.js';

let cluster: TwoCoordinators;

beforeAll(async () => {
  cluster = await startTwoCoordinators();
});
afterAll(() => cluster.close());

/** A connection that a client keeps open after a response. */
async function idleConnection(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(`GET /health HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
  await once(socket, 'data');
  return socket;
}

/** A plain answer over a connection that the client keeps open. */
async function chatOver(agent: Agent, { url, apiKey }: Harness, model: string) {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const request = send(`${url}/v1/chat/completions`, { method: 'POST', agent, headers });
  request.end(JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const { socket } = response;
  for await (const _part of response);
  return { status: response.statusCode, connection: response.headers.connection, socket };
}

test('a provider that connects to another coordinator leaves the first, whose connection may be dead', async () => {
  const { near, far } = cluster;
  const first = await far.provider({ models: ['moving/model'] });
  await until(() => near.app.cluster.servingAtPeers('moving/model') === 1);
  const second = await near.provider({ ...first.options, enclave: first.enclave });
  await first.next('rejected');
  expect(first.rejection).toBe('replaced');
  expect(far.app.providers.snapshot(first.providerId)).toBeNull();
  expect(near.app.providers.snapshot(second.providerId)?.sessionId).toBe(second.sessionId);
  await until(() => near.app.cluster.servingAtPeers('moving/model') === 0);
  expect((await near.chat({ model: 'moving/model' })).status).toBe(200);
});

test('a provider that moved while NATS was away leaves the first coordinator once NATS is back', async () => {
  const { near, far, nats } = cluster;
  const peerCounts = (): number[] => [near, far].map(({ app }) => app.cluster.peerCount());
  const first = await far.provider({ models: ['moving/model'] });
  await until(() => near.app.cluster.servingAtPeers('moving/model') === 1);
  await nats.stop('SIGKILL');
  await until(() => peerCounts().every((count) => count === 0));
  // The first connection stays open and answers pings, so that only the announcement can end it.
  const second = await near.provider({ ...first.options, enclave: first.enclave });
  expect(far.app.providers.snapshot(first.providerId)?.sessionId).toBe(first.sessionId);
  await nats.start();
  await first.next('rejected');
  expect(first.rejection).toBe('replaced');
  await until(() => peerCounts().every((count) => count === 1));
  expect(far.app.providers.snapshot(first.providerId)).toBeNull();
  expect(near.app.providers.snapshot(second.providerId)?.sessionId).toBe(second.sessionId);
  expect((await near.chat({ model: 'moving/model' })).status).toBe(200);
});

test('a coordinator that shuts down moves its providers, and serves new requests through the others', async () => {
  const { near, far } = cluster;
  const moving = await near.provider({ models: [MODEL] });
  expect((await near.chat()).headers.get('x-provider-id')).toBe(moving.providerId);
  const jobs: ScriptedJob[] = [];
  await far.provider({ models: ['slow/model'], onJob: (job) => void jobs.push(job) });
  await until(() => near.app.cluster.servingAtPeers('slow/model') === 1);
  const persistent = new Agent({ keepAlive: true, maxSockets: 1 });
  const first = chatOver(persistent, near, 'slow/model');
  await until(() => jobs.length === 1);
  const slow = near.chat({ model: 'slow/model' });
  await until(() => jobs.length === 2);
  const idle = await idleConnection(near.url);
  const closing = near.app.close(60_000);
  // The idle provider is asked to connect to another coordinator, and does.
  await moving.next('rejected');
  expect(moving.rejection).toBe('shutting_down');
  const moved = await ScriptedProvider.connect(far.url, { ...moving.options, enclave: moving.enclave });
  await until(() => near.app.cluster.servingAtPeers(MODEL) === 1);
  const readiness = await fetch(`${near.url}/health/ready`);
  expect(readiness.status).toBe(503);
  const handedOver = await near.chat({ stream: true });
  expect(handedOver.status).toBe(200);
  expect(handedOver.headers.get('connection')).toBe('close');
  expect(handedOver.headers.get('x-provider-id')).toBe(moved.providerId);
  expect(await handedOver.text()).toContain('[DONE]');
  // New requests are refused from now on, while the running one goes on.
  await once(idle, 'close');
  // The first response had already announced keep-alive. Its connection is closed anyway after the response.
  await jobs[0]?.answerHonestly();
  const { status, connection, socket } = await first;
  expect([status, connection]).toEqual([200, 'keep-alive']);
  if (!socket.destroyed) await once(socket, 'close');
  await jobs[1]?.answerHonestly();
  expect((await slow).status).toBe(200);
  await closing;
  expect((await far.chat()).headers.get('x-provider-id')).toBe(moved.providerId);
  moved.close();
});

test('a coordinator that shuts down waits for jobs of other coordinators on its providers', async () => {
  const { near, far, close } = await startTwoCoordinators();
  try {
    const jobs: ScriptedJob[] = [];
    const provider = await far.provider({ models: ['slow/model'], onJob: (job) => void jobs.push(job) });
    await until(() => near.app.cluster.servingAtPeers('slow/model') === 1);
    const slow = near.chat({ model: 'slow/model' });
    await until(() => jobs.length === 1);
    const logged = far.log.length;
    const closing = far.app.close(60_000);
    let isClosed = false;
    void closing.then(() => {
      isClosed = true;
    });
    // The grace time for load balancers has passed, and the coordinator has no clients of its own to wait for.
    await until(() =>
      fetch(`${far.url}/v1/models`).then(
        ({ status }) => status === 503,
        () => true,
      ),
    );
    expect(isClosed).toBe(false);
    expect(far.log.slice(logged).some((line) => line.includes('provider left'))).toBe(false);
    await jobs[0]?.answerHonestly();
    const response = await slow;
    expect([response.status, response.headers.get('x-provider-id')]).toEqual([200, provider.providerId]);
    await closing;
  } finally {
    await close();
  }
});
