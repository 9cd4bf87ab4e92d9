import { EventEmitter } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { hashPassword, verifyPassword } from 'better-auth/crypto';
import { afterEach, expect, it } from 'vitest';
import { PasswordHasher } from '../../../src/accounts/passwords/password-hasher.js';
import type { Derivation } from '../../../src/accounts/passwords/thread-messages.js';

const hashers: PasswordHasher[] = [];

afterEach(async () => {
  for (const hasher of hashers.splice(0)) await hasher.close();
});

function open(options: ConstructorParameters<typeof PasswordHasher>[0] = {}): PasswordHasher {
  const hasher = new PasswordHasher(options);
  hashers.push(hasher);
  return hasher;
}

/** Worker thread that answers only when the test lets it. */
class HeldThread extends EventEmitter {
  readonly held: Derivation[] = [];
  unref(): void {}
  async terminate(): Promise<number> {
    return 0;
  }
  postMessage(derivation: Derivation): void {
    this.held.push(derivation);
  }
  answer(): void {
    this.held.pop();
    this.emit('message', { key: new Uint8Array(64) });
  }
}

it('hashes like the sign-in library, and verifies hashes of both', async () => {
  const hasher = open();
  const ours = await hasher.hash('Ångström und Söhne');
  const theirs = await hashPassword('Ångström und Söhne');
  expect(ours).toMatch(/^[0-9a-f]{32}:[0-9a-f]{128}$/);
  // The same letters in another Unicode composition, equal after NFKC.
  expect(await verifyPassword({ hash: ours, password: 'Ångström und Söhne' })).toBe(true);
  expect(await hasher.verify({ hash: theirs, password: 'Ångström und Söhne' })).toBe(true);
  expect(await hasher.verify({ hash: theirs, password: 'Angström und Söhne' })).toBe(false);
  await expect(hasher.verify({ hash: 'damaged', password: 'x' })).rejects.toThrow('damaged');
});

it('derives at the cost of the sign-in library unless another is set', async () => {
  const costs: number[] = [];
  const startThread = () => {
    const thread = new HeldThread();
    const post = thread.postMessage.bind(thread);
    thread.postMessage = (derivation) => {
      costs.push(derivation.cost);
      post(derivation);
      thread.answer();
    };
    return thread as unknown as Worker;
  };
  await open({ startThread }).hash('secret');
  await open({ startThread, cost: 2 }).hash('secret');
  expect(costs).toEqual([16_384, 2]);
});

it('verifies hashes at another cost, and none of the default cost with it', async () => {
  const cheap = open({ cost: 2 });
  const hash = await cheap.hash('secret');
  expect(await cheap.verify({ hash, password: 'secret' })).toBe(true);
  expect(await cheap.verify({ hash, password: 'Secret' })).toBe(false);
  expect(await open().verify({ hash, password: 'secret' })).toBe(false);
});

it('runs at most two hashes at once, in arrival order', async () => {
  const threads: HeldThread[] = [];
  const hasher = open({
    maxThreads: 100,
    startThread: () => {
      const thread = new HeldThread();
      threads.push(thread);
      return thread as unknown as Worker;
    },
  });
  const done: number[] = [];
  const all = Array.from({ length: 100 }, (_, index) => hasher.hash(`password ${index}`).then(() => done.push(index)));
  expect(threads).toHaveLength(2);
  while (done.length < 100) {
    expect(hasher.runningCount).toBeLessThanOrEqual(2);
    expect(threads.every(({ held }) => held.length <= 1)).toBe(true);
    for (const thread of threads) if (thread.held.length > 0) thread.answer();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(all);
  expect(done).toEqual(Array.from({ length: 100 }, (_, index) => index));
  expect(threads).toHaveLength(2);
});

it('starts another thread after a failure', async () => {
  const threads: HeldThread[] = [];
  const hasher = open({
    maxThreads: 1,
    startThread: () => {
      const thread = new HeldThread();
      threads.push(thread);
      return thread as unknown as Worker;
    },
  });
  const [first, second] = [hasher.hash('first'), hasher.hash('second')];
  threads[0]?.emit('error', new Error('out of memory'));
  await expect(first).rejects.toThrow('out of memory');
  threads[0]?.emit('exit', 1);
  expect(threads).toHaveLength(2);
  threads[1]?.answer();
  expect(await second).toMatch(/:0{128}$/);
});
