/** Sizes of prompt slices, in virtual time: each slice is charged the time that a simulated machine takes for it. */
import { describe, expect, it } from 'vitest';
import { SlicePolicy } from '../../src/engine/process/decoding/slice-policy.js';

const LIMIT_MS = 29;

/** Time of a slice in milliseconds, by the tokens before the slice. */
type SliceTime = (context: number, tokens: number) => number;

/** Times per row as measured with `f16`: attention row by row, and from 64 rows on in tiles of 64 at a quarter of the time. */
const tiled: SliceTime = (context, tokens) => (tokens < 64 ? tokens * context * 1e-4 : 64 * Math.ceil(tokens / 64) * context * 2.7e-5);
/** Times as measured with `q8_0`: attention row by row. */
const untiled: SliceTime = (context, tokens) => tokens * context * 1.6e-4;
/** Each batch reads all weights, which takes as long as some 500 rows: a GPU. */
const weightBound: SliceTime = (_context, tokens) => 20 + 0.04 * tokens;

interface Slice {
  readonly context: number;
  readonly tokens: number;
  readonly ms: number;
}

/** Reads a prompt up to a context, and returns its slices. */
function read(policy: SlicePolicy, time: SliceTime, { from = 0, to = 40_000, minTokens = 1, limitMs = LIMIT_MS } = {}): Slice[] {
  const slices: Slice[] = [];
  for (let context = from; context < to; ) {
    const tokens = policy.choose({
      context,
      minTokens: Math.min(minTokens, to - context),
      maxTokens: Math.min(512, to - context),
      limitMs,
    });
    const ms = time(context, tokens);
    policy.add(context, tokens, ms);
    slices.push({ context, tokens, ms });
    context += tokens;
  }
  return slices;
}

/** Reads a prompt in whole batches, as while no stream generates. */
function readAlone(policy: SlicePolicy, time: SliceTime, to: number): void {
  for (let context = 0; context < to; context += 512) policy.add(context, 512, time(context, 512));
}

const tokensPerMs = (slices: readonly Slice[]) =>
  slices.reduce((sum, { tokens }) => sum + tokens, 0) / slices.reduce((sum, { ms }) => sum + ms, 0);
/** Slices of one tile in the same contexts. */
const inTiles = (slices: readonly Slice[]) => slices.map((slice) => ({ ...slice, tokens: 64, ms: tiled(slice.context, 64) }));
const between = (slices: readonly Slice[], from: number, to: number) => slices.filter(({ context }) => context >= from && context < to);

it('the first slice has 16 tokens, or what is left', () => {
  const policy = new SlicePolicy(true);
  expect(policy.choose({ context: 0, minTokens: 1, maxTokens: 512, limitMs: LIMIT_MS })).toBe(16);
  expect(policy.choose({ context: 0, minTokens: 1, maxTokens: 5, limitMs: LIMIT_MS })).toBe(5);
  expect(policy.choose({ context: 0, minTokens: 64, maxTokens: 512, limitMs: LIMIT_MS })).toBe(64);
});

it('a size that was measured fills its time', () => {
  const policy = new SlicePolicy(true);
  policy.add(0, 16, 8);
  expect(policy.choose({ context: 16, minTokens: 1, maxTokens: 512, limitMs: 20 })).toBe(40);
});

describe('where attention is computed in tiles', () => {
  it('slices fill tiles as long as a tile fits into the limit', () => {
    const slices = between(read(new SlicePolicy(true), tiled), 4200, 16_000);
    expect(tokensPerMs(slices)).toBeGreaterThan(0.8 * tokensPerMs(inTiles(slices)));
    expect(slices.filter(({ ms }) => ms > 1.2 * LIMIT_MS).length).toBeLessThan(0.02 * slices.length);
  });

  it('in longer contexts, smaller slices fit, and single ones exceed the limit to measure their size', () => {
    const slices = between(read(new SlicePolicy(true), tiled), 17_500, 40_000);
    const beyond = slices.filter(({ ms }) => ms > 1.2 * LIMIT_MS);
    expect(beyond.length).toBeLessThan(0.03 * slices.length);
    expect(Math.max(...beyond.map(({ ms }) => ms))).toBeLessThan(5 * LIMIT_MS);
  });

  it('the times of whole batches, read while no stream generated, show the time of tiles', () => {
    const policy = new SlicePolicy(true);
    readAlone(policy, tiled, 8000);
    const slices = read(policy, tiled, { from: 7000, to: 8000 });
    expect(tokensPerMs(slices)).toBeGreaterThan(0.8 * tokensPerMs(inTiles(slices)));
  });

  it('if single rows take too long, a whole tile costs least per token and excess', () => {
    const policy = new SlicePolicy(true);
    readAlone(policy, tiled, 400_000);
    const slices = read(policy, tiled, { from: 390_000, to: 400_000 });
    const sizes = slices.map(({ tokens }) => tokens);
    expect(sizes.filter((size) => size === 64).length).toBeGreaterThan(0.95 * sizes.length);
  });
});

it('where attention has no tiles, slices shrink to a few tokens, at the same time per token', () => {
  const slices = between(read(new SlicePolicy(true), untiled), 10_000, 40_000);
  expect(slices.filter(({ ms }) => ms > 1.2 * LIMIT_MS).length).toBeLessThan(0.02 * slices.length);
  expect(Math.min(...slices.map(({ tokens }) => tokens))).toBeLessThan(16);
});

it('where a batch of few tokens takes as long as one of many, slices are as large as the limit allows', () => {
  const slices = read(new SlicePolicy(false), weightBound).slice(20);
  expect(tokensPerMs(slices)).toBeGreaterThan(0.9 * (225 / LIMIT_MS));
  expect(slices.filter(({ ms }) => ms > LIMIT_MS + 1).length).toBeLessThan(0.02 * slices.length);
});

it('no slice is smaller than the minimum of a repeatable prompt', () => {
  for (const time of [tiled, untiled, weightBound]) {
    const slices = read(new SlicePolicy(time !== weightBound), time, { minTokens: 64 });
    expect(Math.min(...slices.slice(0, -1).map(({ tokens }) => tokens))).toBeGreaterThanOrEqual(64);
  }
});

it('a single slow slice does not change the sizes for long', () => {
  const policy = new SlicePolicy(true);
  const choose = () => policy.choose({ context: 8000, minTokens: 1, maxTokens: 512, limitMs: LIMIT_MS });
  for (let slice = 0; slice < 10; slice++) policy.add(8000, 64, 17);
  policy.add(8000, 64, 500);
  expect(choose()).toBeGreaterThanOrEqual(64);
});

it('a class whose only measurement was slow is tried again', () => {
  const policy = new SlicePolicy(true);
  policy.add(1000, 64, 2);
  policy.add(8000, 64, 90);
  const sizes = Array.from({ length: 300 }, () => {
    const tokens = policy.choose({ context: 8000, minTokens: 1, maxTokens: 512, limitMs: LIMIT_MS });
    policy.add(8000, tokens, tiled(8000, tokens));
    return tokens;
  });
  expect(sizes.at(-1)).toBeGreaterThan(100);
});
