/** Attacks on the real coordinator by holding requests open: a paying client is served through all of them. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { Browser } from '../support/console-client.js';
import { MODEL, until } from '../support/harness.js';
import { ScriptedProvider } from '../support/scripted-provider.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const PAYING_REQUESTS = 10;
/** Same as the settings below, small so that attacks are cheap. */
const HELD_BYTES = 16 * 2 ** 20;

let dataDir: string;
let address: string;
let provider: ScriptedProvider;
let stop: () => Promise<unknown>;
let apiKey: string;
let adminKey: string;
const sockets: Socket[] = [];

beforeAll(async () => {
  dataDir = temporaryDirectory('coordinator-held-open');
  const child = spawn(process.execPath, [main], {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      DATA_DIR: dataDir,
      DEVELOPMENT: '1',
      ALLOW_SIMULATED_ENCLAVE: '1',
      MAX_HELD_REQUEST_BYTES: String(HELD_BYTES),
      // The budgets are the tested limit.
      RATE_LIMIT_SIGN_IN: '0',
      RATE_LIMIT_ADDRESS: '0',
      STRIPE_SECRET_KEY: 'sk_test_x',
      STRIPE_WEBHOOK_SECRET: 'whsec_x',
      // Nothing listens there: the test attacks the webhook alone.
      MDM_URL: 'http://127.0.0.1:1',
      MDM_API_KEY: 'management key',
      MDM_WEBHOOK_SECRET: 'a webhook secret of some length',
      MDM_TOPIC: 'com.apple.mgmt.External.test',
      MDM_ACME_DIRECTORY_URL: 'http://127.0.0.1:1/directory',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  let out = '';
  child.stdout.on('data', (data) => {
    out += String(data);
  });
  await until(() => out.includes('"listening"'), 60_000);
  const line = out.split('\n').find((text) => text.includes('"listening"'));
  address = (JSON.parse(line ?? '{}') as { address: string }).address;
  const keys = JSON.parse(readFileSync(join(dataDir, 'coordinator', 'development-keys.json'), 'utf8'));
  apiKey = keys.api_key;
  adminKey = keys.admin_key;
  provider = await ScriptedProvider.connect(address, { models: [MODEL] });
  stop = () => {
    child.kill('SIGKILL');
    return ended;
  };
});
afterAll(async () => {
  provider?.close();
  await stop?.();
});

/** Opens requests with endless bodies. Resolves when the coordinator has read the sent bytes, or has responded. */
async function holdOpen(count: number, path: string, headers: string, bodyBytes: number): Promise<void> {
  const { port } = new URL(address);
  const part = Buffer.alloc(bodyBytes - 1, 'x');
  await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(Number(port), '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => {});
      socket.write(`POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${headers}content-length: ${bodyBytes}\r\n\r\n`);
      await new Promise<void>((resolve) => {
        socket.once('close', () => resolve());
        socket.once('data', () => resolve());
        socket.write(part, () => resolve());
      });
    }),
  );
}

function letGo(): void {
  for (const socket of sockets.splice(0)) socket.destroy();
}

/** Statuses of a paying client's requests with bodies of many sizes. */
async function pay(): Promise<number[]> {
  const statuses: number[] = [];
  for (let index = 0; index < PAYING_REQUESTS; index++) {
    const content = 'x'.repeat(index % 2 === 0 ? 2 : 200_000);
    const body = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content }] });
    const answer = await fetch(`${address}/v1/chat/completions`, { method: 'POST', headers: { 'x-api-key': apiKey }, body });
    statuses.push(answer.status);
    await answer.arrayBuffer();
  }
  return statuses;
}

const SERVED = Array.from({ length: PAYING_REQUESTS }, () => 200);

async function reading(name: string): Promise<number> {
  const text = await (await fetch(`${address}/metrics`, { headers: { 'x-api-key': adminKey } })).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

describe('a paying client is served while others hold open', () => {
  const JSON_TYPE = 'content-type: application/json\r\n';
  const KEY = `service-${'x'.repeat(43)}`;

  it.each<[string, number, string, string, number]>([
    ['requests of the console without a session', 400, '/console/v1/keys', JSON_TYPE, 65_536],
    ['sign-ins', 400, '/console/auth/sign-in/email', JSON_TYPE, 65_536],
    ['events of the payment service', 100, '/webhooks/stripe', 'stripe-signature: t=1,v1=0\r\n', 262_144],
    ['reports of the management server', 64, '/mdm/v1/webhook', 'x-hmac-signature: AAAA\r\n', 524_288],
    ['reports of the ACME server', 100, '/mdm/v1/acme', 'x-hmac-signature: AAAA\r\n', 262_144],
    ['requests with an empty key', 4, '/v1/chat/completions', 'x-api-key: \r\n', 8_000_000],
    ['requests with a wrong key', 4, '/v1/chat/completions', `x-api-key: ${KEY}\r\n`, 8_000_000],
    ['requests to unknown addresses', 4, '/nothing', '', 8_000_000],
  ])('%s', async (_, count, path, headers, bytes) => {
    await holdOpen(count, path, headers, bytes);
    expect(await pay()).toEqual(SERVED);
    expect(await reading('inference_stranger_bytes_held')).toBeLessThanOrEqual(16 * 2 ** 20);
    // A user at the attacking address can still sign in.
    expect((await new Browser(address).signIn('nobody@example.com')).status).toBe(401);
    letGo();
  });

  it('bodies of an account without a balance', async () => {
    const person = new Browser(address);
    expect((await person.signUp('empty@example.com')).status).toBe(200);
    const { secret } = await person.newKey();
    await holdOpen(40, '/v1/chat/completions', `x-api-key: ${secret}\r\n`, 1_000_000);
    expect(await pay()).toEqual(SERVED);
    expect(await reading('inference_request_bytes_held')).toBeLessThanOrEqual(HELD_BYTES);
    letGo();
  });

  it('messages of machines that register and never finish them', async () => {
    const providers = await Promise.all(
      Array.from({ length: 60 }, () => ScriptedProvider.connect(address, { models: ['test/other-model'] })),
    );
    const before = await reading('process_resident_memory_bytes');
    const control = Buffer.from([0x89, 0x80, 0, 0, 0, 0]);
    // Fragments interleaved with pings form a single message.
    const fragment = (first: boolean, bytes: number): Buffer => {
      const head = Buffer.from([first ? 0x02 : 0x00, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
      head.writeUInt32BE(bytes, 6);
      return Buffer.concat([head, Buffer.alloc(bytes, 'x'), control]);
    };
    const fragments = Array.from({ length: 61 }, (_, index) => fragment(index === 0, 65_536));
    for (const [index, { socket }] of providers.entries()) {
      const { _socket: raw } = socket as unknown as { _socket: Socket };
      raw.on('error', () => {});
      if (index % 2 === 0) raw.write(Buffer.concat(fragments));
      else raw.write(fragment(true, 4_000_000).subarray(0, 3_999_000));
    }
    // 240 MB, of which each address may hold 64 MiB.
    let openCount = providers.length;
    await until(() => {
      openCount = providers.filter(({ socket }) => socket.readyState === socket.OPEN).length;
      return openCount <= 20;
      // Earlier than the coordinator's idle timeout.
    }, 15_000);
    // Claims within the budget survived.
    expect(openCount).toBeGreaterThan(0);
    expect(await pay()).toEqual(SERVED);
    await until(async () => (await reading('process_resident_memory_bytes')) - before < 200e6, 60_000);
    for (const provider of providers) provider.close();
  });

  it('messages of WebSockets that never register, and the memory of the coordinator stays bounded', async () => {
    const { port } = new URL(address);
    const before = await reading('process_resident_memory_bytes');
    const head = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 0x3f, 0xff, 0xff, 1, 2, 3, 4]);
    const part = Buffer.alloc(4_000_000, 'x');
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = connect(Number(port), '127.0.0.1');
        sockets.push(socket);
        socket.on('error', () => {});
        socket.write(
          'GET /provider/v1/socket HTTP/1.1\r\nhost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n\r\n',
        );
        await new Promise<void>((resolve) => {
          socket.once('close', () => resolve());
          socket.once('data', () => {
            socket.write(head);
            socket.write(part, () => resolve());
          });
        });
      }),
    );
    expect(await pay()).toEqual(SERVED);
    // Unbounded, the sum would be 100 × 4 MB.
    expect((await reading('process_resident_memory_bytes')) - before).toBeLessThan(250e6);
    const newcomer = await ScriptedProvider.connect(address, { models: ['test/newcomer'] });
    newcomer.close();
    letGo();
  });
});
