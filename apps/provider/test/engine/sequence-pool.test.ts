/** Choice of a sequence for a request, and its reusable prefix. */
import type { Token } from 'node-llama-cpp';
import { expect, test } from 'vitest';
import { SequencePool } from '../../src/engine/process/decoding/sequence-pool.js';

function prompt(...tokens: number[]): Token[] {
  return tokens as Token[];
}

function memory(oldest = 0) {
  const wiped: number[] = [];
  const cut: [number, number][] = [];
  return {
    wiped,
    cut,
    disposeSequence: (id: number) => void wiped.push(id),
    removeTokenCellsFromSequence: (id: number, start: number) => cut.push([id, start]) > 0,
    getSequenceKvCacheMinPosition: () => oldest,
  };
}

function leave(sequences: SequencePool, scope: string | null, tokens: readonly Token[], repeatable = tokens.length): number {
  const held = sequences.take({ prompt: tokens, scope, repeatable: false, media: [] });
  if (held === null) throw new Error('no sequence is free');
  held.tokens = [...tokens];
  held.bitExactTokens = repeatable;
  sequences.release(held);
  return held.id;
}

test('a second turn reuses the whole first turn', () => {
  const native = memory();
  const sequences = new SequencePool(native, { count: 3, grain: 1, minRest: 1, window: null });
  const id = leave(sequences, 'a', prompt(1, 2, 3, 4));
  const held = sequences.take({ prompt: prompt(1, 2, 3, 4, 5, 6), scope: 'a', repeatable: false, media: [] });
  expect(held).toMatchObject({ id, tokens: [1, 2, 3, 4] });
  expect(native.cut).toEqual([]);
});

test('different tokens are cut off, and the last prompt token is always computed', () => {
  const native = memory();
  const sequences = new SequencePool(native, { count: 1, grain: 1, minRest: 1, window: null });
  leave(sequences, 'a', prompt(1, 2, 3, 4));
  const other = sequences.take({ prompt: prompt(1, 2, 9), scope: 'a', repeatable: false, media: [] });
  expect(other?.tokens).toEqual([1, 2]);
  other?.tokens.push(9 as Token);
  if (other !== null) sequences.release(other);
  expect(sequences.take({ prompt: prompt(1, 2, 9), scope: 'a', repeatable: false, media: [] })?.tokens).toEqual([1, 2]);
  expect(native.cut).toEqual([
    [0, 2],
    [0, 2],
  ]);
});

test.each([
  ['another scope', 'a', 'b'],
  ['no scope', 'a', null],
  ['a scope, of what had none', null, 'a'],
  ['no scope, of what had none', null, null],
])('%s reuses nothing', (_what, left, wanted) => {
  const native = memory();
  const sequences = new SequencePool(native, { count: 1, grain: 1, minRest: 1, window: null });
  leave(sequences, left, prompt(1, 2, 3));
  expect(sequences.take({ prompt: prompt(1, 2, 3, 4), scope: wanted, repeatable: false, media: [] })?.tokens).toEqual([]);
  expect(native.wiped).toContain(0);
});

test('a sequence without a scope is cleared on release', () => {
  const native = memory();
  const sequences = new SequencePool(native, { count: 1, grain: 1, minRest: 1, window: null });
  leave(sequences, null, prompt(1, 2, 3));
  expect(native.wiped).toEqual([0]);
});

test('the longest common prefix wins; otherwise an empty sequence, then the one idle longest', () => {
  let now = 0;
  const sequences = new SequencePool(memory(), { count: 3, grain: 1, minRest: 1, window: null, now: () => ++now });
  const short = leave(sequences, 'a', prompt(1, 2));
  const longer = leave(sequences, 'a', prompt(1, 2, 3));
  // The second request took the first one's sequence because of the common prefix.
  expect(longer).toBe(short);
  const other = leave(sequences, 'b', prompt(7, 8, 9));
  expect(other).not.toBe(short);
  const third = leave(sequences, 'c', prompt(4));
  expect(new Set([short, other, third]).size).toBe(3);
  expect(leave(sequences, 'd', prompt(5))).toBe(short);
});

test('a repeatable request reuses only bit-exact tokens, in whole slices', () => {
  const tokens = Array.from({ length: 10 }, (_, index) => index as Token);
  for (const [repeatable, grain, minRest, expected] of [
    [10, 1, 1, 9],
    [7, 1, 1, 7],
    [10, 4, 1, 8],
    [3, 4, 1, 0],
    [10, 1, 6, 4],
    [3, 1, 6, 3],
    [10, 1, 64, 0],
  ] as const) {
    const sequences = new SequencePool(memory(), { count: 1, grain, minRest, window: null });
    leave(sequences, 'a', tokens, repeatable);
    expect(sequences.take({ prompt: tokens, scope: 'a', repeatable: true, media: [] })?.tokens).toHaveLength(expected);
  }
});

test.each([
  ['a memory that cannot be cut', { ...memory(), removeTokenCellsFromSequence: () => false }, null, 0],
  ['a memory that has lost its beginning', memory(1), null, 0],
  ['a window that still reaches far enough back', memory(1), 1, 2],
  ['a window that has moved on', memory(2), 1, 0],
])('%s preserves a possible prefix', (_what, native, window, expected) => {
  const sequences = new SequencePool(native, { count: 1, grain: 1, minRest: 1, window });
  leave(sequences, 'a', prompt(1, 2, 3));
  expect(sequences.take({ prompt: prompt(1, 2, 9), scope: 'a', repeatable: false, media: [] })?.tokens).toHaveLength(expected);
});

test('idle sequences are cleared in time', () => {
  let now = 0;
  const native = memory();
  const sequences = new SequencePool(native, { count: 2, grain: 1, minRest: 1, window: null, now: () => now });
  leave(sequences, 'a', prompt(1, 2, 3));
  now = 99;
  expect(sequences.wipeIdle(100)).toBe(true);
  now = 100;
  expect(sequences.wipeIdle(100)).toBe(false);
  expect(native.wiped).toContain(0);
  expect(sequences.take({ prompt: prompt(1, 2, 3, 4), scope: 'a', repeatable: false, media: [] })?.tokens).toEqual([]);
});

test('reuse ends before an image that differs, at positions that the model counts', () => {
  const native = memory();
  const sequences = new SequencePool(native, { count: 1, grain: 1, minRest: 1, window: null });
  const held = sequences.take({ prompt: prompt(1, -5, -5, -5, -5, 2), scope: 'a', repeatable: false, media: [] });
  if (held === null) throw new Error('no sequence is free');
  held.tokens = prompt(1, -5, -5, -5, -5, 2, -6, -6, 3);
  held.media = [
    { start: 1, tokens: 4, positions: 2 },
    { start: 6, tokens: 2, positions: 1 },
  ];
  sequences.release(held);
  const next = prompt(1, -5, -5, -5, -5, 2, -6, 9);
  expect(sequences.take({ prompt: next, scope: 'a', repeatable: false, media: [] })).toMatchObject({
    tokens: [1, -5, -5, -5, -5, 2],
    media: [{ start: 1, tokens: 4, positions: 2 }],
  });
  expect(native.cut).toEqual([[held.id, 4]]);
});
