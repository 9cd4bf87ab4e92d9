/** `OwnerPrefixes`: longest and newest match, limits of number and age, and which prefixes are published. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OwnerPrefixes } from '../../src/cluster/owner-prefixes.js';
import { extractPrefixes, PREFIX_LIFETIME_MS, type PromptPrefix, storedPrefixes } from '../../src/placement/prefix-affinity.js';
import { NOW } from '../providers.js';

/** Blocks of a prompt with 256 tokens each. */
const prefixesOf = (blocks: number, first = 0): PromptPrefix[] =>
  Array.from({ length: blocks }, (_, index) => ({ hash: first + index, tokens: 256 * (index + 1) }));
const hashesOf = (promptPrefixes: readonly PromptPrefix[]): number[] => promptPrefixes.map(({ hash }) => hash);

describe('cached prefixes of coordinators', () => {
  it('name the newest owner of the longest prefix', () => {
    const prefixes = new OwnerPrefixes();
    prefixes.record([0, 1], 'a', NOW);
    prefixes.record([0], 'b', NOW + 1);
    expect(prefixes.find(prefixesOf(5), NOW + 1)).toEqual({ owner: 'a', tokens: 512 });
    expect(prefixes.find(prefixesOf(1), NOW + 1)).toEqual({ owner: 'b', tokens: 256 });
    expect(prefixes.find(prefixesOf(5, 100), NOW + 1)).toBeNull();
    expect(prefixes.find([], NOW + 1)).toBeNull();
  });

  it('are forgotten after their lifetime', () => {
    const prefixes = new OwnerPrefixes();
    prefixes.record([3], 'a', NOW);
    expect(prefixes.find(prefixesOf(4), NOW + PREFIX_LIFETIME_MS - 1)).not.toBeNull();
    expect(prefixes.find(prefixesOf(4), NOW + PREFIX_LIFETIME_MS)).toBeNull();
  });

  it('are bounded; the oldest go first', () => {
    const prefixes = new OwnerPrefixes();
    for (let hash = 0; hash < 200_001; hash++) prefixes.record([hash], 'a', NOW);
    expect(prefixes.size).toBe(200_000);
    expect(prefixes.find([{ hash: 0, tokens: 256 }], NOW)).toBeNull();
    expect(prefixes.find([{ hash: 200_000, tokens: 256 }], NOW)).not.toBeNull();
  });
});

describe('the stored prefixes of a prompt', () => {
  it('are the whole prompt and the first of each doubling', () => {
    expect(hashesOf(storedPrefixes(prefixesOf(12)))).toEqual([0, 1, 3, 7, 11]);
    expect(storedPrefixes([])).toEqual([]);
  });

  it('are the longest prefixes of an extract, and are found by the next turn from an extract', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 3 }), (blocks, more) => {
        const [turn, next] = [prefixesOf(blocks), prefixesOf(blocks + more)];
        const [stored, extracted] = [storedPrefixes(turn), storedPrefixes(extractPrefixes(turn, 10))].map(hashesOf) as [number[], number[]];
        expect(extracted.length).toBeGreaterThanOrEqual(Math.min(5, stored.length));
        expect(extracted).toEqual(stored.slice(stored.length - extracted.length));
        const last = turn.at(-1);
        if (last !== undefined) expect(hashesOf(extractPrefixes(next, 10))).toContain(last.hash);
      }),
      { seed: 23 },
    );
  });

  it('are at most ten in an extract, in their order, for every length of prompt', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 1, max: 10 }), (blocks, max) => {
        const hashes = hashesOf(extractPrefixes(prefixesOf(blocks), max));
        expect(hashes.length).toBe(Math.min(hashes.length, max, blocks));
        expect(hashes).toEqual([...new Set(hashes)].sort((a, b) => a - b));
        if (blocks > 0) expect(hashes.at(-1)).toBe(blocks - 1);
      }),
      { seed: 24 },
    );
  });
});
