/** Session with the coordinator: key rotation, dead sockets, rejections, and delays. */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type Enclave, openEnclave, simulatedHelperCommand } from '@inference/enclave';
import { openKeyStatement, type TrustMessage } from '@inference/protocol';
import { verifyP256 } from '@inference/protocol/crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { freePort } from '../../../../scripts/network/cluster/free-ports.js';
import { listenLocally } from '../../../../test/support/local-server.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { trustSentence } from '../../src/daemon/daemon-log.js';
import { SealingKeys } from '../../src/jobs/sealing-keys.js';
import { Session, type SessionOptions } from '../../src/session/session.js';
import { backoffMs, type SessionEvent, stayConnected } from '../../src/session/stay-connected.js';
import { FakeCoordinator } from '../support/fake-coordinator.js';
import { sessionOptions } from './session-options.js';

const dataDir = temporaryDirectory('session');
let enclave: Enclave;
let coordinator: FakeCoordinator;
let leave: AbortController;

beforeAll(async () => {
  enclave = await openEnclave({ command: simulatedHelperCommand({ dataDir }) });
});
afterAll(() => enclave.close());
beforeEach(async () => {
  coordinator = await FakeCoordinator.listen();
  leave = new AbortController();
});
afterEach(async () => {
  leave.abort();
  await coordinator.close();
});

const options = (changes: Partial<SessionOptions> = {}): SessionOptions => sessionOptions(coordinator, enclave, changes);

/** Runs a session until the coordinator admits it. */
async function admitted(changes: Partial<SessionOptions> = {}) {
  const running = Session.run(options(changes), leave.signal);
  return { running, session: await admit() };
}

async function admit() {
  const session = await coordinator.session();
  await session.admit();
  return session;
}

/** Keeps a provider connected, and collects its events. */
function stay(changes: Partial<Parameters<typeof stayConnected>[0]> = {}, base = options()) {
  const events: SessionEvent[] = [];
  const running = stayConnected({ ...base, onEvent: (event) => events.push(event), random: () => 0.5, ...changes }, leave.signal);
  return {
    events,
    async until(count: number): Promise<void> {
      while (events.length < count) await new Promise((resolve) => setTimeout(resolve, 10));
    },
    async end(): Promise<void> {
      leave.abort();
      await running;
    },
  };
}

test('a silent socket is closed', async () => {
  const { running, session } = await admitted({ liveness: { pingMs: 50, silenceMs: 1000 } });
  const from = Date.now();
  session.pauseReading(true);
  expect(await running).toEqual({
    kind: 'lost',
    reason: 'the coordinator has been silent for too long',
    registered: true,
    hasPeers: false,
  });
  expect(Date.now() - from).toBeLessThan(5_000);
  session.pauseReading(false);
});

test('pongs are life', async () => {
  const { running, session } = await admitted({ liveness: { pingMs: 50, silenceMs: 1500 } });
  await new Promise((resolve) => setTimeout(resolve, 3000));
  expect(session.closed).toBe(false);
  leave.abort();
  expect((await running).kind).toBe('lost');
});

test.each([
  ['a frame that is no frame', (send: (data: Uint8Array | string) => void) => send(Buffer.alloc(3)), /bad frame/],
  ['a message that is no message', (send: (data: Uint8Array | string) => void) => send('{"type":"job"}'), /bad message/],
])('%s ends the session', async (_what, act, reason) => {
  const { running, session } = await admitted();
  act((data) => session.sendRaw(data));
  const end = await running;
  expect(end.kind === 'lost' && end.reason).toMatch(reason);
});

test('a rejection is reported with its code, and retried after a delay', async () => {
  const { events, until, end } = stay({ random: () => 0 });
  const session = await coordinator.session();
  await session.next('register');
  session.send({ type: 'rejected', code: 'simulated_enclave_refused', message: 'not here' } as never);
  await until(1);
  expect(events[0]).toMatchObject({
    type: 'rejected',
    code: 'simulated_enclave_refused',
    message: 'not here',
    advice: expect.stringMatching(/simulated/),
  });
  expect(events[0]?.retryInMs).toBeGreaterThanOrEqual(30_000);
  await end();
});

test('a shutdown of the coordinator causes a random delay', async () => {
  const { events, until, end } = stay({ restart: { firstMs: 60_000, maxMs: 60_000 } });
  const session = await admit();
  session.send({ type: 'rejected', code: 'shutting_down', message: 'the coordinator is shutting down' });
  await until(1);
  expect(events[0]).toMatchObject({ code: 'shutting_down', retryInMs: 45_000 });
  await end();
});

test('in a cluster, a silent coordinator is left within two heartbeats', async () => {
  coordinator.heartbeatMs = 500;
  const { running, session } = await admitted();
  session.pauseReading(true);
  const from = performance.now();
  expect(await running).toMatchObject({ kind: 'lost', reason: 'the coordinator has been silent for too long', hasPeers: true });
  expect(performance.now() - from).toBeLessThan(5_000);
  session.pauseReading(false);
});

test('in a cluster, another coordinator is tried at once', async () => {
  const slow = { firstMs: 60_000, maxMs: 60_000 };
  coordinator.heartbeatMs = 2000;
  const { events, until, end } = stay({ backoff: slow, restart: slow });
  const first = await admit();
  first.send({ type: 'rejected', code: 'shutting_down', message: 'the coordinator is shutting down' });
  const second = await admit();
  coordinator.heartbeatMs = null;
  second.close();
  const third = await admit();
  third.close();
  await until(3);
  expect(events.map(({ retryInMs }) => retryInMs)).toEqual([250, 250, 45_000]);
  await end();
});

test('in a cluster, a coordinator that accepts the connection and stays silent is left for another one', async () => {
  coordinator.heartbeatMs = 2000;
  const { events, until, end } = stay({ welcome: { firstMs: 500, maxMs: 10_000 }, random: () => 0.01 });
  const first = await admit();
  coordinator.isFrozen = true;
  first.close();
  await until(3);
  coordinator.isFrozen = false;
  await admit();
  expect(events.slice(1, 3)).toEqual([
    { type: 'lost', reason: 'the coordinator did not answer in time', retryInMs: 5 },
    { type: 'lost', reason: 'the coordinator did not answer in time', retryInMs: expect.any(Number) },
  ]);
  await end();
});

test('a machine that accepts connections without a word is left in time', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket));
  await listenLocally(silent);
  const url = `ws://127.0.0.1:${(silent.address() as AddressInfo).port}/provider/v1/socket`;
  expect(await Session.run(options({ url, welcomeTimeoutMs: 100 }), leave.signal)).toMatchObject({
    kind: 'lost',
    reason: expect.stringMatching(/cannot be reached: .*timed out/),
    registered: false,
  });
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));
});

test('the detailed rejection and the trust message reach the owner', async () => {
  const told: TrustMessage[] = [];
  const { events, until, end } = stay({ onTrust: (trust) => told.push(trust) });
  const session = await admit();
  const parts = [{ name: 'device_chain', state: 'missing', reason: 'chain_missing', remedy: 'Wait.' }] as const;
  session.send({ type: 'trust', trust_level: 'self_signed', routable: true, status: 'online', parts: [...parts] });
  while (told.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(trustSentence(told[0] as TrustMessage)).toBe('trust level self_signed, ready for requests; device_chain is missing. Wait.');
  const certified: TrustMessage = { ...(told[0] as TrustMessage), trust_level: 'hardware', parts: [] };
  expect(trustSentence(certified, true)).toContain('trust level hardware (simulated enclave), ready for requests');
  expect(trustSentence(certified)).toBe('trust level hardware, ready for requests.');
  const restraint = { state: 'cooling_down', reason: 'jobs_failed', since: 0, until: Date.UTC(2030, 0, 1) };
  const paused = { ...(told[0] as TrustMessage), routable: false, status: 'cooling_down', restraint };
  expect(trustSentence(paused)).toContain('gets NO requests (cooling_down) until 2030-01-01T00:00:00.000Z (jobs_failed)');
  const onTrial = { ...(told[0] as TrustMessage), restraint: { ...restraint, state: 'on_probation', until: 9e15 } };
  expect(trustSentence(onTrial)).toContain('ready for requests, one at a time (jobs_failed)');
  session.send({ type: 'rejected', code: 'posture_insufficient', reason: 'sip_disabled', message: 'no' });
  await until(1);
  expect(events[0]).toMatchObject({ code: 'posture_insufficient', reason: 'sip_disabled' });
  await end();
});

test('reconnects to a restarted coordinator', async () => {
  const port = await freePort();
  const gone = options({ url: `ws://127.0.0.1:${port}/provider/v1/socket` });
  await coordinator.close();
  const { events, until, end } = stay({ backoff: { firstMs: 20, maxMs: 100 } }, gone);
  await until(3);
  expect(events[0]).toMatchObject({ type: 'lost', reason: expect.stringMatching(/cannot be reached/) });
  coordinator = await FakeCoordinator.listen({ port });
  await admit();
  await end();
});

test('pauses double up to their limit, half of each at random', () => {
  const backoff = { firstMs: 500, maxMs: 30_000 };
  expect([0, 1, 2, 10, 100].map((attempt) => backoffMs(backoff, attempt, 0))).toEqual([250, 500, 1000, 15_000, 15_000]);
  expect([0, 1, 2, 10, 100].map((attempt) => backoffMs(backoff, attempt, 1))).toEqual([500, 1000, 2000, 30_000, 30_000]);
});

test('sealing keys are replaced before expiry, and old keys are dropped after a grace time', async () => {
  const updates: { payload: string; signature: string }[] = [];
  const keys = await SealingKeys.open({
    enclave,
    attestationSha256: '0'.repeat(64),
    onUpdate: (statement) => updates.push(statement),
    onFailure: () => {},
    lifetimeMs: 5_000,
    graceMs: 1_500,
  });
  const first = openKeyStatement(keys.statement, enclave.publicKey, verifyP256).value;
  expect(keys.find(first.key_id)).not.toBeNull();
  while (updates.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  const second = openKeyStatement(keys.statement, enclave.publicKey, verifyP256).value;
  expect(second.not_before).toBeLessThan(first.not_after);
  expect(second.key_id).not.toBe(first.key_id);
  expect([keys.find(first.key_id) === null, keys.find(second.key_id) === null]).toEqual([false, false]);
  while (keys.find(first.key_id) !== null) await new Promise((resolve) => setTimeout(resolve, 10));
  keys.close();
  expect(keys.find(second.key_id)).toBeNull();
});

test('the session ends if the enclave signs no new key', async () => {
  let calls = 0;
  let failed = false;
  const keys = await SealingKeys.open({
    enclave: {
      signKey: (request) => {
        calls += 1;
        return calls === 1 ? enclave.signKey(request) : Promise.reject(new Error('gone'));
      },
    },
    attestationSha256: '0'.repeat(64),
    onUpdate: () => {},
    onFailure: () => {
      failed = true;
    },
    lifetimeMs: 400,
    graceMs: 100,
  });
  while (!failed) await new Promise((resolve) => setTimeout(resolve, 10));
  keys.close();
});
