/** `spyOnNats`: reads the coordinators' NATS messages, and searches them for the canary, a text that every prompt contains. */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { fromSeed } from '@nats-io/nkeys';
import type { SoakCluster } from './soak-cluster.js';

/** Messages between two coordinators to read, so that some belong to jobs. */
const MIN_LINK_MESSAGES = 300;
const MAX_SPY_MS = 60_000;
const MESSAGE = /MSG coordinator\./g;

/** Returns problems. Call before any fault: the spy's subscriptions hide that a dead coordinator has no responders. */
export async function spyOnNats({ dataDir, coordinators }: SoakCluster, canary: string, signal: AbortSignal): Promise<string[]> {
  const counts = { bytes: 0, linkMessages: 0, prompts: 0 };
  const read = (bytes: Buffer): void => {
    const text = bytes.toString('latin1');
    counts.bytes += bytes.length;
    counts.linkMessages += text.match(MESSAGE)?.length ?? 0;
    if (text.includes(canary)) counts.prompts++;
  };
  const directory = join(dataDir, 'cluster');
  const names = coordinators.map(({ index }) => `coordinator-${index + 1}`);
  const sockets = await Promise.all(names.map((name) => listen(directory, name, canary.length, read)));
  const deadline = performance.now() + MAX_SPY_MS;
  while (counts.linkMessages < MIN_LINK_MESSAGES && performance.now() < deadline && !signal.aborted) await delay(100);
  for (const socket of sockets) socket.destroy();
  console.log(`NATS: ${counts.bytes} bytes read, ${counts.linkMessages} messages on links, ${counts.prompts} prompts`);
  if (counts.prompts > 0) return [`${counts.prompts} prompts in NATS messages`];
  return counts.linkMessages < MIN_LINK_MESSAGES ? [`only ${counts.linkMessages} NATS messages on links were read`] : [];
}

/** Subscribes to a coordinator's messages, with the coordinator's own key. Each `read` repeats the last `overlap` bytes. */
async function listen(directory: string, name: string, overlap: number, read: (bytes: Buffer) => void): Promise<TLSSocket> {
  const env = readFileSync(join(directory, `${name}.env`), 'utf8');
  const server = new URL(/^NATS_URL=([^,\n]+)/m.exec(env)?.[1] ?? '');
  const plain = connect(Number(server.port), server.hostname);
  const info = await firstLine(plain);
  const { nonce } = JSON.parse(info.replace(/^INFO /, '')) as { nonce: string };
  const socket = connectTls({ socket: plain, host: server.hostname, ca: readFileSync(join(directory, 'ca.pem')) });
  await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  const pair = fromSeed(readFileSync(join(directory, `${name}.nk`)).subarray(0, SEED_BYTES));
  const sig = Buffer.from(pair.sign(Buffer.from(nonce))).toString('base64url');
  const options = { verbose: false, pedantic: false, protocol: 1, lang: 'spy', version: '1', nkey: pair.getPublicKey(), sig };
  socket.write(`CONNECT ${JSON.stringify(options)}\r\nSUB fleet.> 1\r\nSUB coordinator.${name}.in.> 2\r\n`);
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    if (chunk.includes('PING\r\n')) socket.write('PONG\r\n');
    read(Buffer.concat([rest, chunk]));
    rest = chunk.subarray(Math.max(0, chunk.length - overlap));
  });
  return socket;
}

/** Length of an nkey seed (NATS private key); in the file, a newline follows. */
const SEED_BYTES = 58;

/** Reads the server's greeting only, because the server then waits for TLS. */
function firstLine(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('data', (bytes: Buffer) => {
      socket.removeAllListeners('error');
      resolve(bytes.toString());
    });
  });
}
