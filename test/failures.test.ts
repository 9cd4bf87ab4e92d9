/** Parts of a running network are killed, frozen and fed invalid input; the network reports errors, loses nothing and continues. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { descendantsOf, isAlive, waitUntilGone } from './support/processes.js';

let network: DemoNetwork;
let dispose: () => Promise<void>;

beforeAll(async () => {
  ({ network, dispose } = await startDemoNetwork({ coordinatorEnv: { LOG_LEVEL: 'debug' } }));
});
afterAll(() => dispose?.());

const story = { messages: [{ role: 'user', content: 'Tell me a story about Mia.' }] };

function child(name: RegExp): number {
  const provider = network.providers[0]?.current.pid as number;
  const found = descendantsOf(provider).find((row) => name.test(row.command));
  if (found === undefined) throw new Error(`no child of the provider matches ${name}`);
  return found.pid;
}

async function ask(): Promise<Response> {
  return network.post('/v1/chat/completions', { model: network.model, messages: [{ role: 'user', content: 'Hello!' }], temperature: 0 });
}

/** Asks until an answer comes; rejects when none came within the time. */
async function answered(deadlineMs = 100_000): Promise<void> {
  await expect.poll(async () => (await ask()).status, { timeout: deadlineMs, interval: 250 }).toBe(200);
}

describe('the network goes on when', () => {
  it('the enclave helper is killed', async () => {
    process.kill(child(/simulated/), 'SIGKILL');
    await answered();
  });

  it('the enclave helper hangs', async () => {
    const helper = child(/simulated/);
    process.kill(helper, 'SIGSTOP');
    const response = await ask();
    expect([200, 502, 503, 504]).toContain(response.status);
    await answered();
    expect(await waitUntilGone([helper])).toEqual([]);
  });

  it('the engine is killed while it answers', async () => {
    const response = await network.post('/v1/chat/completions', { ...story, model: network.model, stream: true });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    process.kill(child(/engine/), 'SIGKILL');
    let rest = '';
    for (let part = await reader.read(); !part.done; part = await reader.read()) rest += Buffer.from(part.value).toString('utf8');
    if (!rest.includes('se_signature')) {
      expect(rest).toMatch(/"error"/);
      expect(rest).not.toMatch(/\[DONE\]/);
    }
    await answered();
  });

  it('the provider is killed and started again', async () => {
    const provider = network.providers[0]?.current.pid as number;
    const family = descendantsOf(provider).map((row) => row.pid);
    process.kill(provider, 'SIGKILL');
    expect(await waitUntilGone([provider, ...family])).toEqual([]);
    await answered();
    expect(network.providers[0]?.current.pid).not.toBe(provider);
  });

  it('the coordinator is killed and started again', async () => {
    process.kill(network.coordinator.current.pid, 'SIGKILL');
    await expect.poll(async () => (await ask().catch(() => null))?.status, { timeout: 60_000, interval: 250 }).toBe(200);
  });

  it('clients go away in the middle', async () => {
    await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        network.post(
          '/v1/chat/completions',
          { ...story, model: network.model, stream: i % 2 === 0 },
          { signal: AbortSignal.timeout(5 + 7 * i) },
        ),
      ),
    );
    await answered();
  });
});

describe('a stranger at the provider socket', () => {
  const url = (): string => `${network.baseUrl.replace('http', 'ws')}/provider/v1/socket`;

  /** Sends the messages; resolves with all received messages when the coordinator closes. */
  function talk(messages: readonly (string | Buffer)[]): Promise<string[]> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url());
      const heard: string[] = [];
      socket.on('open', () => messages.forEach((message) => void socket.send(message)));
      socket.on('message', (data: Buffer) => heard.push(data.toString('utf8')));
      socket.on('close', () => resolve(heard));
      socket.on('error', reject);
    });
  }

  it.each<[string, (string | Buffer)[], RegExp]>([
    ['invalid JSON', ['{'], /bad_message/],
    ['a data frame before it said who it is', [Buffer.alloc(64)], /out_of_turn|bad_message/],
    [
      'a version nobody speaks',
      [JSON.stringify({ type: 'hello', versions: [999], agent: { name: 'x', version: '1' } })],
      /version_unsupported/,
    ],
    ['a message twice the cap', [JSON.stringify({ type: 'hello', pad: 'x'.repeat(512 * 1024) })], /too_large/],
    ['a frame twice the cap', [Buffer.alloc(1024 * 1024)], /too_large|out_of_turn/],
  ])('who sends %s is told so and shut out', async (_, messages, expected) => {
    const heard = await talk(messages);
    expect(heard.at(-1) ?? '').toMatch(expected);
    expect((await ask()).status).toBe(200);
  });
});

describe('the end of a network', () => {
  it('leaves no process behind', async () => {
    const pids = [network.coordinator, ...network.providers].flatMap(({ current }) => [
      current.pid,
      ...descendantsOf(current.pid).map((row) => row.pid),
    ]);
    expect(pids.length).toBeGreaterThanOrEqual(4);
    expect(pids.every(isAlive)).toBe(true);
    await network.stop();
    expect(await waitUntilGone(pids)).toEqual([]);
  });
});
