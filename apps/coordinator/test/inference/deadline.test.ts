import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Deadline } from '../../src/inference/deadline.js';

let server: Server;
let near: Socket;
let far: Socket;

beforeEach(async () => {
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const taken = once(server, 'connection') as Promise<[Socket]>;
  near = connect((server.address() as { port: number }).port, '127.0.0.1');
  [[far]] = await Promise.all([taken, once(near, 'connect')]);
});

afterEach(() => {
  near.destroy();
  far.destroy();
  server.close();
});

/** Blocks the process: neither timers nor sockets are handled. */
const standStill = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

it('expires once, after its time, and not after clear', async () => {
  let over = 0;
  const deadline = new Deadline(() => over++);
  expect(deadline.isSet).toBe(false);
  deadline.set(1);
  await expect.poll(() => over).toBe(1);
  expect(deadline.isSet).toBe(true);
  deadline.clear();
  expect(deadline.isSet).toBe(false);
  deadline.set(1);
  deadline.clear();
  await sleep(20);
  expect(over).toBe(1);
});

it('restarts the full time on renew, also after expiry', async () => {
  let over = 0;
  const deadline = new Deadline(() => over++);
  deadline.set(1);
  await expect.poll(() => over).toBe(1);
  deadline.renew();
  await expect.poll(() => over).toBe(2);
});

for (const act of ['set', 'clear'] as const) {
  it(`handles messages that arrived during a pause of the process before expiry: ${act}`, async () => {
    let over = 0;
    const deadline = new Deadline(() => over++);
    far.once('data', () => (act === 'set' ? deadline.set(60_000) : deadline.clear()));
    deadline.set(20);
    near.write('a sign of life');
    standStill(100);
    await once(far, 'data');
    await new Promise((resolve) => setImmediate(resolve));
    expect(over).toBe(0);
    deadline.clear();
  });
}
