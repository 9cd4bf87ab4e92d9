/** A slow client that disconnects pays for bytes that its host received, not for bytes in the coordinator's kernel. */
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { utf8 } from '@inference/protocol';
import { afterEach, expect, it } from 'vitest';
import { CLIENT_WINDOW_BYTES, ClientConnection, MAX_UNCHECKED_BYTES } from '../../../src/inference/delivery/client-connection.js';
import { SendQueues } from '../../../src/inference/delivery/send-queues.js';
import { type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';

/** 3 MB in total, less than the kernel buffers for a client that does not read. */
const TOKENS = 3000;
const TOKEN_BYTES = 1000;
const EVENT = `data: {"choices":[],"text":"${'x'.repeat(TOKEN_BYTES - 34)}"}\n\n`;

let harness: Harness | null = null;
afterEach(async () => {
  await harness?.close();
  harness = null;
});

/** Writes each token as soon as there is credit. `waits`: the provider is out of credit. */
async function answerAtLength(job: ScriptedJob): Promise<void> {
  const event = utf8(EVENT);
  job.accept();
  while (job.tokens < TOKENS && !job.cancelled.aborted) {
    job.tokens++;
    await job.pushWithinCredit(event);
  }
  if (job.cancelled.aborted) return;
  job.push(new Uint8Array(), true);
  job.complete();
}

function ask({ url, apiKey }: Harness): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      `${url}/v1/chat/completions`,
      { method: 'POST', headers: { 'x-api-key': apiKey }, agent: false },
      (response) => {
        response.pause();
        response.on('error', () => {});
        resolve(response);
      },
    );
    request.on('error', reject);
    request.end(JSON.stringify({ model: MODEL, stream: true, max_tokens: TOKENS, messages: [{ role: 'user', content: 'hi' }] }));
  });
}

/** Reads this many bytes, as fast as they arrive, and then stops. */
async function read(response: http.IncomingMessage, bytes: number): Promise<void> {
  for (let left = bytes; left > 0; ) {
    const part = response.read(Math.min(left, Math.max(1, response.readableLength))) as Buffer | null;
    if (part === null) await new Promise((resolve) => response.once('readable', resolve));
    else left -= part.length;
  }
}

/** Bytes that the kernel received but the client has not read (proc_pid_net(5)). */
function unreadBytes({ socket }: http.IncomingMessage): number {
  const port = (socket.localPort ?? 0).toString(16).toUpperCase().padStart(4, '0');
  const row = new RegExp(`: [0-9A-F]+:${port} [0-9A-F]+:[0-9A-F]{4} [0-9A-F]{2} [0-9A-F]{8}:([0-9A-F]{8})`);
  const [, unread] = row.exec(readFileSync('/proc/self/net/tcp', 'latin1')) ?? [];
  if (unread === undefined) throw new Error('the connection is not listed');
  return Number.parseInt(unread, 16);
}

it.runIf(process.platform === 'linux').each([
  ['nothing', 0],
  ['200 tokens', 200],
])('that read %s of 3,000 tokens pays for little more', async (_what, tokens) => {
  const running = await startHarness();
  harness = running;
  const provider = await running.provider({ onJob: (job) => void answerAtLength(job) });
  const response = await ask(running);
  await read(response, tokens * TOKEN_BYTES);
  const job = [...provider.jobs.values()][0] as ScriptedJob;
  // Waits until the credit is used up, or, if the kernel's queues cannot be read, until everything is sent.
  let [before, same] = [-1, 0];
  await until(async () => {
    same = job.credit < TOKEN_BYTES && job.sent === before ? same + 1 : 0;
    before = job.sent;
    await new Promise((resolve) => setTimeout(resolve, 50));
    return same === 5 || job.over;
  });
  const inClient = unreadBytes(response) + response.readableLength + response.socket.readableLength;
  response.destroy();
  await until(() => running.jobLines().length === 1);
  const { completion_tokens } = running.jobLines()[0] as { completion_tokens: number };
  // All bytes that the client read, less a window that was acknowledged after the last reading.
  expect(completion_tokens).toBeGreaterThanOrEqual(tokens - CLIENT_WINDOW_BYTES / TOKEN_BYTES);
  // Bytes in the client's kernel, plus bytes written before the next reading of the queue.
  const maxUntakenBytes = inClient + MAX_UNCHECKED_BYTES + CLIENT_WINDOW_BYTES;
  expect(completion_tokens).toBeLessThan(tokens + maxUntakenBytes / TOKEN_BYTES);
  expect(completion_tokens).toBeLessThan(TOKENS);
});

it('a client that takes all after the last reading and disconnects pays for all but one window, and always for the first window', async () => {
  const clients: ClientConnection[] = [];
  let looks = 0;
  const server = http.createServer(({ socket: { localPort = 0, remotePort = 0 } }, response) => {
    const end = (port: number): string => `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    const queues = new SendQueues(async () => {
      looks++;
      return `   0: ${end(localPort)} ${end(remotePort)} 01 00100000:00000000 00:00000000 00000000\n`;
    }, true);
    clients.push(new ClientConnection(response, 600_000, queues));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  let read = 0;
  const socket = net.connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nhost: gateway\r\n\r\n'));
  socket.on('data', ({ length }) => {
    read += length;
  });
  await until(() => clients.length === 1);
  const [client] = clients as [ClientConnection];
  const untaken: number[] = [];
  for (let written = CLIENT_WINDOW_BYTES; written <= 3 * CLIENT_WINDOW_BYTES; written += CLIENT_WINDOW_BYTES) {
    const before = looks;
    client.write(Buffer.alloc(CLIENT_WINDOW_BYTES), () => {});
    await until(() => read > written && looks > before + 1);
    untaken.push(client.undeliveredBytes);
  }
  socket.destroy();
  server.close();
  expect(untaken).toEqual([0, CLIENT_WINDOW_BYTES, CLIENT_WINDOW_BYTES]);
});

it('a client that keeps reading gets every byte of a long stream, and pays for all of it', async () => {
  const running = await startHarness();
  harness = running;
  await running.provider({ onJob: (job) => void answerAtLength(job) });
  const response = await ask(running);
  let text = '';
  for await (const chunk of response) text += chunk;
  expect(text.split(EVENT)).toHaveLength(TOKENS + 1);
  expect(text).toContain('se_signature');
  await until(() => running.jobLines().length === 1);
  expect(running.jobLines()[0]).toMatchObject({ status: 'delivered', completion_tokens: TOKENS });
});

/** Some machines and containers have no IPv6. */
const HOSTS = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'))
  ? ['127.0.0.1', '::1', '::']
  : ['127.0.0.1'];

it.runIf(process.platform === 'linux').each(HOSTS)('the send queue of a connection to %s is known', async (host) => {
  const accepted: net.Socket[] = [];
  const server = net.createServer((socket) => void accepted.push(socket.on('error', () => {})));
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as net.AddressInfo;
  const client = net.connect(port, host === '::' ? '127.0.0.1' : host);
  client.pause();
  await until(() => accepted.length === 1);
  const [socket] = accepted as [net.Socket];
  const queues = new SendQueues();
  expect(await queues.unacknowledged(socket)).toBe(0);
  socket.write(Buffer.alloc(2 * 1024 * 1024));
  await until(async () => ((await queues.unacknowledged(socket)) ?? 0) > 100_000);
  client.resume();
  await until(async () => (await queues.unacknowledged(socket)) === 0);
  client.destroy();
  socket.destroy();
  expect(await queues.unacknowledged(socket)).toBeNull();
  server.close();
});

it('a system that lists no connections is asked once', async () => {
  let reads = 0;
  const queues = new SendQueues(() => {
    reads++;
    return Promise.reject(new Error('no such file'));
  }, true);
  const socket = { localAddress: '127.0.0.1', localPort: 1, remoteAddress: '127.0.0.1', remotePort: 2 } as net.Socket;
  expect([await queues.unacknowledged(socket), await queues.unacknowledged(socket), reads]).toEqual([null, null, 1]);
});

it('readings never overlap, and a reading requested during another begins after it', async () => {
  const socket = { localAddress: '127.0.0.1', localPort: 1, remoteAddress: '127.0.0.1', remotePort: 2 } as net.Socket;
  const ends: (() => void)[] = [];
  let running = 0;
  let maxRunning = 0;
  const queues = new SendQueues(async () => {
    maxRunning = Math.max(maxRunning, ++running);
    await new Promise<void>((resolve) => ends.push(resolve));
    running--;
    return `   0: 0100007F:0001 0100007F:0002 01 0000000${ends.length}:00000000 00:00000000 00000000\n`;
  }, true);
  const first = queues.unacknowledged(socket);
  await until(() => ends.length === 1);
  const later = [queues.unacknowledged(socket), queues.unacknowledged(socket)];
  // Longer than the minimum pause between two readings.
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(ends).toHaveLength(1);
  ends[0]?.();
  expect(await first).toBe(1);
  await until(() => ends.length === 2);
  ends[1]?.();
  expect([await Promise.all(later), maxRunning]).toEqual([[2, 2], 1]);
});
