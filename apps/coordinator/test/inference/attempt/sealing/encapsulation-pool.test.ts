/** Encapsulations computed in a worker thread: each is used once and opens at its recipient. No job depends on the thread. */
import { Worker } from 'node:worker_threads';
import { generateSealingKeyPair, type SealingKeyPair, setupRecipient, setupSender } from '@inference/protocol/crypto';
import { afterEach, expect, it, vi } from 'vitest';
import { EncapsulationPool } from '../../../../src/inference/attempt/sealing/encapsulation-pool.js';

const INFO = Uint8Array.of(1, 2, 3);
const AAD = Uint8Array.of(4);
const TEXT = Uint8Array.of(5, 6);

const open: EncapsulationPool[] = [];
const failures: unknown[] = [];

function encapsulationPool(options: Partial<ConstructorParameters<typeof EncapsulationPool>[0]> = {}): EncapsulationPool {
  const made = new EncapsulationPool({ onError: (error) => void failures.push(error), ...options });
  open.push(made);
  return made;
}

/** Takes an encapsulation and checks that the recipient opens a sealed message. Returns the encapsulated key. */
function useOne(from: EncapsulationPool, key: SealingKeyPair): string {
  const encapsulation = from.take(key.publicKey);
  const sealed = setupSender(encapsulation, INFO).seal(AAD, TEXT);
  expect(setupRecipient(key, encapsulation.enc, INFO).open(AAD, sealed)).toEqual(TEXT);
  return Buffer.from(encapsulation.enc).toString('hex');
}

async function someWait(from: EncapsulationPool, key: SealingKeyPair, min = 1): Promise<void> {
  await vi.waitFor(() => expect(from.readyCount(key.publicKey)).toBeGreaterThanOrEqual(min), { timeout: 20_000 });
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((made) => made.close()));
  vi.useRealTimers();
  expect(failures.splice(0)).toEqual([]);
});

it('each encapsulation is used once, precomputed or not, and belongs to one recipient', async () => {
  const from = encapsulationPool();
  const keys = [generateSealingKeyPair(), generateSealingKeyPair()] as const;
  const seen = new Set<string>();
  let taken = 0;
  let waited = 0;
  for (let round = 0; round < 6; round++) {
    for (const key of keys) {
      for (let job = 0; job < 20; job++) {
        if (from.readyCount(key.publicKey) > 0) waited++;
        seen.add(useOne(from, key));
        taken++;
      }
    }
    // A pool requests at least half of its maximum at once.
    for (const key of keys) await someWait(from, key, 16);
  }
  expect(seen.size).toBe(taken);
  expect(waited).toBeGreaterThan(40);
});

it('a recipient of few jobs gets nothing precomputed and starts no thread', () => {
  const startThread = vi.fn<() => Worker>();
  const from = encapsulationPool({ startThread });
  const key = generateSealingKeyPair();
  for (let job = 0; job < 3; job++) useOne(from, key);
  expect(startThread).not.toHaveBeenCalled();
});

it('the number of precomputed encapsulations is bounded, however many jobs arrive at once', async () => {
  const from = encapsulationPool();
  const key = generateSealingKeyPair();
  for (let job = 0; job < 500; job++) useOne(from, key);
  await vi.waitFor(() => expect(from.readyCount(key.publicKey)).toBe(32), { timeout: 20_000 });
});

it('encapsulations of idle recipients are dropped', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  let now = 1_000_000;
  const from = encapsulationPool({ now: () => now });
  const [quiet, busy] = [generateSealingKeyPair(), generateSealingKeyPair()];
  for (let job = 0; job < 10; job++) for (const key of [quiet, busy]) useOne(from, key);
  for (const key of [quiet, busy]) await someWait(from, key);
  now += 100_000;
  useOne(from, busy);
  now += 30_000;
  vi.advanceTimersByTime(60_000);
  expect(from.readyCount(quiet.publicKey)).toBe(0);
  expect(from.readyCount(busy.publicKey)).toBeGreaterThan(0);
});

it('a malformed key is refused each time, and other recipients are still served', async () => {
  const from = encapsulationPool();
  const smallOrder = new Uint8Array(32);
  for (let job = 0; job < 10; job++) {
    expect(() => from.take(smallOrder)).toThrow(expect.objectContaining({ name: 'SealingError', code: 'bad_key' }));
  }
  const key = generateSealingKeyPair();
  for (let job = 0; job < 10; job++) useOne(from, key);
  await someWait(from, key);
  expect(from.readyCount(smallOrder)).toBe(0);
});

/** A worker that fails the first 32 encapsulations, the maximum that a pool requests, and answers later ones with zeros. */
const FAILING_AT_FIRST = `
  const { parentPort } = require('node:worker_threads');
  let failed = 0;
  parentPort.on('message', ({ recipient, count }) => {
    const pairs = failed < 32 ? null : new Uint8Array(count * 64);
    if (pairs === null) failed += count;
    parentPort.postMessage({ recipient, count, pairs });
  });`;

it('a pool is refilled after failed encapsulations on the thread', async () => {
  const from = encapsulationPool({ startThread: () => new Worker(FAILING_AT_FIRST, { eval: true, execArgv: [] }) });
  const { publicKey } = generateSealingKeyPair();
  for (let job = 0; job < 500; job++) from.take(publicKey);
  await vi.waitFor(
    () => {
      from.take(publicKey);
      expect(from.readyCount(publicKey)).toBeGreaterThan(0);
    },
    { timeout: 20_000 },
  );
});

it('a failed thread is reported once, and sealing continues without it', async () => {
  const from = encapsulationPool({ startThread: () => new Worker('throw new Error("no thread")', { eval: true, execArgv: [] }) });
  const key = generateSealingKeyPair();
  for (let job = 0; job < 10; job++) useOne(from, key);
  await vi.waitFor(() => expect(failures).toHaveLength(1), { timeout: 20_000 });
  for (let job = 0; job < 10; job++) useOne(from, key);
  expect(failures.splice(0)).toEqual([expect.objectContaining({ message: 'no thread' })]);
});

it('a thread that cannot be started is reported once and blocks nothing', () => {
  const from = encapsulationPool({
    startThread: () => {
      throw new Error('no such entry');
    },
  });
  const key = generateSealingKeyPair();
  for (let job = 0; job < 10; job++) useOne(from, key);
  expect(failures.splice(0)).toEqual([expect.objectContaining({ message: 'no such entry' })]);
});

it('a closed pool is empty and still seals', async () => {
  const from = encapsulationPool();
  const key = generateSealingKeyPair();
  for (let job = 0; job < 10; job++) useOne(from, key);
  await someWait(from, key);
  await from.close();
  expect(from.readyCount(key.publicKey)).toBe(0);
  expect(useOne(from, key)).not.toBe(useOne(from, key));
});
