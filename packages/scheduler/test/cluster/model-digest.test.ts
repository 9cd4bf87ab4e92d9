/** Model digests: content, maximum size, and rejection of invalid encodings. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  classCostMs,
  type DigestContext,
  decodeDigest,
  digestOf,
  encodeDigest,
  MAX_CLASSES,
  MAX_DIGEST_CHARS,
  MAX_IMAGE_SIZES,
  type ModelDigest,
} from '../../src/cluster/model-digest.js';
import { costOf } from '../../src/cost/job-cost.js';
import type { ModelLoad } from '../../src/cost/model-load.js';
import { ProviderPool } from '../../src/pool/provider-pool.js';
import { anyProvider, id, NOW, poolOf, provider } from '../providers.js';

const SEED = { seed: 20 };
const TEXT: DigestContext = { queueLength: 0, meanServiceMs: null, imageSizes: [] };
const WORK = { promptTokens: 500, completionTokens: 400 };

const anyLoad: fc.Arbitrary<ModelLoad> = fc.oneof(
  fc.constant<ModelLoad>({ kind: 'ready', since: 0 }),
  fc.integer({ min: 1, max: 60_000 }).map((ms): ModelLoad => ({ kind: 'loading', readyAt: NOW + ms, loadMs: 60_000 })),
  fc.integer({ min: 1, max: 600_000 }).map((loadMs): ModelLoad => ({ kind: 'cold', loadMs })),
);

const anyPool: fc.Arbitrary<ProviderPool<string>> = fc
  .integer({ min: 0, max: 60 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => fc.tuple(anyProvider(`m${index}`), anyLoad))))
  .map((members) => {
    const pool = new ProviderPool<string>();
    for (const [{ facts, speed }, load] of members) pool.put(facts.providerId, facts, speed, 8192, NOW, load);
    return pool;
  });

const anyContext: fc.Arbitrary<DigestContext> = fc.record({
  queueLength: fc.integer({ min: 0, max: 10_000 }),
  meanServiceMs: fc.option(fc.double({ min: 0, max: 1e7, noNaN: true })),
  imageSizes: fc.array(fc.constantFrom('1024x1024', '512x768', '9999x9999'), { maxLength: 2 * MAX_IMAGE_SIZES }),
});

const VALID = digestOf(poolOf([provider('a'), provider('b', { trustLevel: 'hardware' })]), TEXT);

/** Encoded digest with changed members. */
function changed(change: (members: unknown[], classes: unknown[][]) => void, digest: ModelDigest = VALID): string {
  const members = JSON.parse(encodeDigest(digest)) as unknown[];
  // The encoding ends with the classes, each an array.
  change(members, members[12] as unknown[][]);
  return JSON.stringify(members);
}

describe('a digest', () => {
  it('survives its encoding, in bounded size, for every pool', () => {
    fc.assert(
      fc.property(anyPool, anyContext, (pool, context) => {
        const digest = digestOf(pool, context);
        const text = encodeDigest(digest);
        expect(decodeDigest(text)).toEqual({ kind: 'digest', digest });
        expect(text.length).toBeLessThanOrEqual(MAX_DIGEST_CHARS);
        expect(digest.classes.length).toBeLessThanOrEqual(MAX_CLASSES);
      }),
      SEED,
    );
  });

  it('stays bounded for twenty thousand providers of all speeds', () => {
    const pool = new ProviderPool<string>();
    for (let index = 0; index < 20_000; index++) {
      const { facts, speed } = provider(`m${index}`, {}, { prefillTps: 10 + (index % 997) ** 1.5, decodeTps: 1 + (index % 251) });
      pool.put(facts.providerId, facts, speed, 8192, NOW, index % 5 === 0 ? { kind: 'cold', loadMs: 100 * (index % 331) } : undefined);
    }
    const digest = digestOf(pool, { ...TEXT, imageSizes: Array.from({ length: 200 }, (_, index) => `${1000 + index}x1000`) });
    expect(digest.classes).toHaveLength(MAX_CLASSES);
    expect(digest.imageSizes).toHaveLength(MAX_IMAGE_SIZES);
    expect(encodeDigest(digest).length).toBeLessThanOrEqual(MAX_DIGEST_CHARS);
  });

  it('counts every free slot of loaded providers in exactly one class', () => {
    fc.assert(
      fc.property(anyPool, anyContext, (pool, context) => {
        const { freeSlots, trustedFreeSlots, classes } = digestOf(pool, context);
        let [free, trusted] = [0, 0];
        for (const { traits, members } of pool.open) {
          for (const { facts } of traits.isCold ? [] : members) {
            free += facts.slots - facts.usedSlots;
            if (facts.trustLevel === 'hardware') trusted += facts.slots - facts.usedSlots;
          }
        }
        expect([freeSlots, trustedFreeSlots]).toEqual([free, trusted]);
        const loaded = classes.filter(({ isCold }) => !isCold);
        expect(loaded.reduce((sum, one) => sum + one.freeSlots, 0)).toBe(free);
        expect(loaded.reduce((sum, one) => sum + one.trustedFreeSlots, 0)).toBe(trusted);
      }),
      SEED,
    );
  });

  it('lists loaded classes before cold classes, each the cheapest first', () => {
    fc.assert(
      fc.property(anyPool, (pool) => {
        const { classes } = digestOf(pool, TEXT);
        const firstCold = classes.findIndex(({ isCold }) => isCold);
        if (firstCold >= 0) expect(classes.slice(firstCold).every(({ isCold }) => isCold)).toBe(true);
        for (const [index, one] of classes.entries()) {
          const next = classes[index + 1];
          // Rates are rounded to three digits, so the order of similar classes may change.
          if (next?.isCold === one.isCold) expect(classCostMs(one, WORK)).toBeLessThanOrEqual(classCostMs(next, WORK) * 1.02);
        }
      }),
      SEED,
    );
  });

  it('promises the cost of the cheapest provider within the width of a class', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 50, max: 5000 }), fc.integer({ min: 5, max: 200 })), { minLength: 1 }), (rates) => {
        const pool = poolOf(rates.map(([prefillTps, decodeTps], index) => provider(`m${index}`, {}, { prefillTps, decodeTps })));
        const cheapestMs = Math.min(...pool.open.map(({ costModel }) => costOf(costModel, WORK)));
        const [first] = digestOf(pool, TEXT).classes;
        expect(first === undefined ? 0 : classCostMs(first, WORK) / cheapestMs).toBeGreaterThan(0.98);
        expect(first === undefined ? 0 : classCostMs(first, WORK) / cheapestMs).toBeLessThan(1.05 * 1.02);
      }),
      SEED,
    );
  });

  it('shows unproven providers at the cost that decides about them', () => {
    const [proven, untried] = [0, 3].map((samples) => digestOf(poolOf([provider('a', {}, { samples })]), TEXT).classes[0]).reverse();
    if (proven === undefined || untried === undefined) throw new Error('no class');
    expect(classCostMs(untried, WORK) / classCostMs(proven, WORK)).toBeCloseTo(1.5, 1);
  });

  it('has no class for a provider without a free slot', () => {
    const { totalSlots, freeSlots, classes } = digestOf(poolOf([provider('full', { slots: 2, usedSlots: 2 })]), TEXT);
    expect({ totalSlots, freeSlots, classes }).toEqual({ totalSlots: 2, freeSlots: 0, classes: [] });
  });

  it('follows the pool when a provider leaves', () => {
    const pool = poolOf([provider('a'), provider('b')]);
    pool.remove('a', id('a'));
    expect(digestOf(pool, TEXT)).toMatchObject({ serving: 1, totalSlots: 4, freeSlots: 4 });
  });
});

describe('the text of a peer', () => {
  it.each([
    ['too_long', ' '.repeat(MAX_DIGEST_CHARS + 1)],
    ['not_json', '['],
    ['wrong_shape', '{}'],
    ['wrong_shape', '[1]'],
    ['unknown_version', changed((members) => members.splice(0, 1, 2))],
    ['wrong_count', changed((members) => members.splice(1, 1, -1))],
    ['wrong_count', changed((members) => members.splice(8, 1, 0.5))],
    ['wrong_count', changed((members) => members.splice(10, 1, 'many'))],
    ['wrong_time', changed((members) => members.splice(9, 1, 1e10))],
    ['wrong_image_size', changed((members) => members.splice(11, 1, ['0x10']))],
    ['wrong_image_size', changed((members) => members.splice(11, 1, Array(MAX_IMAGE_SIZES + 1).fill('10x10')))],
    ['too_many_classes', changed((members) => members.splice(12, 1, Array(MAX_CLASSES + 1).fill([])))],
    ['wrong_shape', changed((_, [first = []]) => first.splice(0, 1, 2))],
    ['wrong_rate', changed((_, [first = []]) => first.splice(5, 1, 0))],
    ['wrong_time', changed((_, [first = []]) => first.splice(6, 1, -1))],
    ['inconsistent', changed((_, [first = []]) => first.splice(1, 1, 0))],
    ['inconsistent', changed((members) => members.splice(3, 1, 7))],
    ['inconsistent', changed((members) => members.splice(6, 1, 3))],
    ['wrong_order', changed((_, classes) => classes.unshift([1, 1, 1, 0, 100, 10, 0, 0]))],
  ])('is rejected as %s', (reason, text) => {
    expect(decodeDigest(text)).toEqual({ kind: 'rejected', reason });
  });

  it('is a digest or rejected, for any input', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 12 }), fc.jsonValue(), (index, value) => {
        const decoded = decodeDigest(changed((members) => members.splice(index, 1, value)));
        if (decoded.kind === 'digest') expect(decodeDigest(encodeDigest(decoded.digest))).toEqual(decoded);
      }),
      SEED,
    );
  });
});
