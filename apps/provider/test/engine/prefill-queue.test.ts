/** Slices of prompts: of the shortest prompt first, as large as their time allows, and exact for repeatable streams. */
import type { Token } from 'node-llama-cpp';
import { describe, expect, it } from 'vitest';
import { PrefillQueue, type PromptReader } from '../../src/engine/process/decoding/prefill-queue.js';

const SHARED = { minRows: 2, slice: 64, exactDrafts: true } as const;
const SEPARATE = { minRows: null, slice: 128, exactDrafts: false } as const;

const tokens = (count: number) => new Array<Token>(count).fill(0 as Token);
const image = (start: number) => ({ start, tokens: 10, positions: 10, read: async () => {} });

interface ReaderOptions {
  /** Tokens read before the admission, from the cache, and in all. */
  readonly readBefore?: number;
  readonly read?: number;
  readonly repeatable?: boolean;
  readonly images?: readonly number[];
  readonly admittedAt?: number;
}

const reader = (
  length: number,
  { readBefore = 0, read = readBefore, repeatable = false, images = [], admittedAt = 0 }: ReaderOptions = {},
): PromptReader => ({
  stream: { options: { prompt: tokens(length), repeatable, media: images.map(image) } },
  sequence: { tokens: tokens(read) },
  dueAt: admittedAt + length - readBefore,
});

describe('the next slice of a prompt', () => {
  it('is a whole batch if no other stream generates, and ends before an image', () => {
    const queue = new PrefillQueue({ repeatability: SHARED, batchTokens: 512, usesGpu: false });
    expect(queue.sliceTokens(reader(2000), null)).toBe(512);
    expect(queue.sliceTokens(reader(2000, { read: 1900 }), null)).toBe(100);
    expect(queue.sliceTokens(reader(2000, { read: 60, images: [50, 300] }), null)).toBe(240);
  });

  it('fits into its time while other streams generate', () => {
    const queue = new PrefillQueue({ repeatability: SHARED, batchTokens: 512, usesGpu: false });
    expect(queue.sliceTokens(reader(2000), 20)).toBe(16);
    queue.slices.add(0, 16, 8);
    expect(queue.sliceTokens(reader(2000), 20)).toBe(40);
  });

  it('of a repeatable stream has at least the exact minimum, or ends at a multiple of the exact size', () => {
    const shared = new PrefillQueue({ repeatability: SHARED, batchTokens: 512, usesGpu: false });
    expect(shared.sliceTokens(reader(130, { repeatable: true }), 20)).toBe(65);
    const separate = new PrefillQueue({ repeatability: SEPARATE, batchTokens: 512, usesGpu: false });
    expect(separate.sliceTokens(reader(1000, { read: 100, repeatable: true }), null)).toBe(28);
    expect([shared.isBitExact(1, 63), shared.isBitExact(1, 65)]).toEqual([false, true]);
    expect([separate.isBitExact(128, 128), separate.isBitExact(100, 128), separate.isBitExact(128, 100)]).toEqual([true, false, false]);
  });
});

it('prompts that cannot be cut wait once the time is overdrawn', () => {
  const queue = new PrefillQueue({ repeatability: SHARED, batchTokens: 512, usesGpu: false });
  const [repeatable, withImage, text] = [reader(100, { repeatable: true }), reader(100, { images: [0] }), reader(100)];
  for (const each of [repeatable, withImage, text]) queue.add(each);
  expect(queue.take(true)).toBe(repeatable);
  queue.budget.overdraw(1000);
  expect([queue.take(true), queue.take(true)]).toEqual([text, undefined]);
  expect(queue.take(false)).toBe(withImage);
  expect([queue.isEmpty, queue.take(false)]).toEqual([true, undefined]);
});

it('the prompt that is due first is next', () => {
  const queue = new PrefillQueue({ repeatability: SHARED, batchTokens: 512, usesGpu: false });
  const [long, short, cached, late] = [reader(1000), reader(300), reader(2000, { readBefore: 1600 }), reader(300, { admittedAt: 750 })];
  for (const each of [late, long, cached, short]) queue.add(each);
  expect([queue.take(false), queue.take(false), queue.take(false), queue.take(false)]).toEqual([short, cached, long, late]);
});

it('a short prompt overtakes a long one that was begun, and of equal ones the begun one goes on', () => {
  const queue = new PrefillQueue({ repeatability: SHARED, batchTokens: 512, usesGpu: false });
  const [begun, equal, short] = [reader(1000, { read: 600 }), reader(1000), reader(300, { admittedAt: 600 })];
  for (const each of [equal, begun, short]) queue.add(each);
  expect([queue.take(false), queue.take(false), queue.take(false)]).toEqual([short, begun, equal]);
});
