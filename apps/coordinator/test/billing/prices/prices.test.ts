/** Money, prices, and the bounds for signed usage. */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { formatUsd, microUsd } from '../../../src/billing/micro-usd.js';
import { costOf } from '../../../src/billing/prices/price.js';
import { PriceRepository } from '../../../src/billing/prices/price-repository.js';
import { type ClaimedUsage, promptTokenBound, settlementBounds } from '../../../src/billing/prices/settlement-bounds.js';
import type { Database } from '../../../src/database/tables.js';
import { untilBlocked } from '../../support/blocked-statement.js';
import { describeDatabases } from '../../support/databases.js';
import { PLAIN_PRICE } from '../ledger/random-steps.js';

describe('money', () => {
  it('is always whole micro-USD', () => {
    for (const value of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) expect(() => microUsd(value)).toThrow(RangeError);
    expect(Object.is(microUsd(-0), 0)).toBe(true);
    expect([0, 1, -1, 12_340_000, Number.MAX_SAFE_INTEGER].map((value) => formatUsd(microUsd(value)))).toEqual([
      '0.000000',
      '0.000001',
      '-0.000001',
      '12.340000',
      '9007199254.740991',
    ]);
  });
});

describe('a cost', () => {
  it('is exact, each part rounded up', () => {
    const count = fc.integer({ min: 0, max: 10_000_000 });
    const rate = fc.integer({ min: 0, max: 10_000_000_000 });
    fc.assert(
      fc.property(count, count, fc.integer({ min: 0, max: 10 }), rate, rate, rate, (prompt, completion, images, a, b, c) => {
        const price = { promptPerMillion: microUsd(a), completionPerMillion: microUsd(b), perImage: microUsd(c) };
        const up = (n: number, perMillion: number) => (BigInt(n) * BigInt(perMillion) + 999_999n) / 1_000_000n;
        const exact = up(prompt, a) + up(completion, b) + BigInt(images) * BigInt(c);
        expect(BigInt(costOf(price, { promptTokens: prompt, completionTokens: completion, images }))).toBe(exact);
      }),
    );
  });

  it('counts cached tokens at their own rate, rounded up with the other prompt tokens', () => {
    const count = fc.integer({ min: 0, max: 10_000_000 });
    const rate = fc.integer({ min: 0, max: 10_000_000_000 });
    fc.assert(
      fc.property(count, count, rate, rate, (others, cachedTokens, a, b) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        const price = { ...PLAIN_PRICE, promptPerMillion: microUsd(high), cachedPerMillion: microUsd(low) };
        const usage = { promptTokens: others + cachedTokens, cachedTokens, completionTokens: 0 };
        const exact = (BigInt(others) * BigInt(high) + BigInt(cachedTokens) * BigInt(low) + 999_999n) / 1_000_000n;
        expect(BigInt(costOf(price, usage))).toBe(exact);
        const { cachedPerMillion: _, ...same } = price;
        expect(costOf(same, usage)).toBe(costOf(same, { ...usage, cachedTokens: 0 }));
        expect(costOf(price, usage)).toBeLessThanOrEqual(costOf(same, usage));
      }),
    );
    expect(() => costOf(PLAIN_PRICE, { promptTokens: 1, cachedTokens: 2, completionTokens: 0 })).toThrow(RangeError);
  });

  it('is never zero for priced usage, and rejects malformed counts', () => {
    const price = { ...PLAIN_PRICE, promptPerMillion: microUsd(1), completionPerMillion: microUsd(1) };
    expect(costOf(price, { promptTokens: 1, completionTokens: 1 })).toBe(2);
    expect(costOf(price, { promptTokens: 0, completionTokens: 0 })).toBe(0);
    for (const bad of [-1, 0.5, Number.NaN]) expect(() => costOf(price, { promptTokens: bad, completionTokens: 0 })).toThrow(RangeError);
    const dear = { ...PLAIN_PRICE, promptPerMillion: microUsd(Number.MAX_SAFE_INTEGER) };
    expect(() => costOf(dear, { promptTokens: Number.MAX_SAFE_INTEGER, completionTokens: 0 })).toThrow(RangeError);
  });
});

describe('billable usage', () => {
  const facts = { maxPromptTokens: promptTokenBound(400), maxCompletionTokens: 8192, deliveredBytes: 4000, elapsedMs: 10_000 };
  const honest: ClaimedUsage = { promptTokens: 120, completionTokens: 900, hiddenTokens: 0, cachedTokens: 100 };

  it('is an honest claim, unchanged', () => {
    expect(settlementBounds(honest, facts)).toEqual({ ...honest, images: 0, lowered: [] });
  });

  it('lets only think segments far exceed the delivered bytes', () => {
    const thought = { ...honest, completionTokens: 8000, hiddenTokens: 7900 };
    expect(settlementBounds(thought, facts)).toMatchObject({ completionTokens: 8000, hiddenTokens: 7900, lowered: [] });
    const lie = { ...honest, completionTokens: 8000 };
    expect(settlementBounds(lie, facts)).toMatchObject({ completionTokens: 4064, lowered: ['delivered_bytes'] });
  });

  it('is zero without delivery', () => {
    const nothing = { promptTokens: 0, completionTokens: 0, hiddenTokens: 0, cachedTokens: 0, images: 0 };
    expect(settlementBounds(honest, { ...facts, deliveredBytes: 0 })).toEqual({ ...nothing, lowered: ['nothing_delivered'] });
    expect(settlementBounds(honest, { ...facts, deliveredBytes: Number.NaN })).toMatchObject(nothing);
    for (const count of ['hiddenTokens', 'cachedTokens'] as const) {
      expect(settlementBounds({ ...nothing, [count]: 1 }, { ...facts, deliveredBytes: 0 }).lowered).toEqual(['nothing_delivered']);
    }
  });

  it("is limited by max_tokens, the prompt's bytes, the time, and the requested images", () => {
    expect(settlementBounds({ ...honest, completionTokens: 9000, hiddenTokens: 9000 }, facts)).toMatchObject({
      completionTokens: 8192,
      hiddenTokens: 8192,
      lowered: ['max_tokens'],
    });
    expect(settlementBounds({ ...honest, promptTokens: 5000 }, facts)).toMatchObject({ promptTokens: 912, lowered: ['prompt_bytes'] });
    expect(settlementBounds({ ...honest, cachedTokens: 121 }, facts)).toMatchObject({ cachedTokens: 120, lowered: ['prompt'] });
    expect(settlementBounds({ ...honest, hiddenTokens: 901 }, facts)).toMatchObject({
      completionTokens: 900,
      hiddenTokens: 900,
      lowered: ['completion'],
    });
    const hasty = settlementBounds({ ...honest, completionTokens: 8000, hiddenTokens: 8000 }, { ...facts, elapsedMs: 50 });
    expect(hasty).toMatchObject({ completionTokens: 1064, lowered: ['time'] });
    expect(settlementBounds({ ...honest, images: 3 }, { ...facts, maxImages: 1 })).toMatchObject({ images: 1, lowered: ['images'] });
  });

  it('is whole numbers within the claim and the job, for any claim', () => {
    const anything = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60, -1));
    fc.assert(
      fc.property(anything, anything, anything, anything, fc.nat(100_000), fc.nat(10_000), (a, b, c, d, bytes, max) => {
        const bounded = settlementBounds(
          { promptTokens: a, completionTokens: b, hiddenTokens: c, cachedTokens: d },
          { maxPromptTokens: 300, maxCompletionTokens: max, deliveredBytes: bytes },
        );
        const { promptTokens, completionTokens, hiddenTokens, cachedTokens } = bounded;
        for (const count of [promptTokens, completionTokens, hiddenTokens, cachedTokens]) {
          expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
        }
        expect(promptTokens).toBeLessThanOrEqual(300);
        expect(cachedTokens).toBeLessThanOrEqual(promptTokens);
        expect(completionTokens).toBeLessThanOrEqual(max);
        expect(completionTokens - hiddenTokens).toBeLessThanOrEqual(bytes + 64);
      }),
    );
  });
});

describeDatabases('prices', (fresh, dialect) => {
  const defaults = { promptPerMillion: microUsd(5), completionPerMillion: microUsd(6), perImage: microUsd(7) };
  const onError = (error: unknown): void => {
    throw error;
  };

  it("fall back from the model's price to `*` to the configured rates, and are never overwritten", async () => {
    const place = await fresh();
    const database = await place.open();
    let now = 1000;
    const prices = await PriceRepository.open({ database, defaults, now: () => now, onError });
    expect(prices.current('m')).toMatchObject({ id: 'default', completionPerMillion: 6 });
    const general = await prices.set({ ...defaults, model: '*', perImage: microUsd(1) });
    const own = await prices.set({ ...defaults, model: 'm', perImage: microUsd(2) });
    expect(prices.current('m')).toEqual(own);
    expect(prices.current('another')).toEqual(general);

    const later = await prices.set({ ...defaults, model: 'm', perImage: microUsd(3), validFrom: 5000 });
    expect(prices.current('m')).toEqual(own);
    now = 5000;
    expect(prices.current('m')).toEqual(later);
    now = 6000;
    const [one, two] = await Promise.all([4, 5].map((price) => prices.set({ ...defaults, model: 'm', perImage: microUsd(price) })));
    const history = await prices.history('m');
    expect(history.slice(2)).toEqual([later, own]);
    expect(new Set(history.slice(0, 2).map((price) => price.id))).toEqual(new Set([one?.id, two?.id]));

    const other = await PriceRepository.open({ database, defaults, now: () => now, onError });
    expect(other.current('m')).toEqual(prices.current('m'));
    expect(other.list().map((price) => price.model)).toEqual(['*', 'm']);
    other.close();
    prices.close();
    await database.destroy();
    await place.remove();
  });

  it('are listed under the id of a model whose own price begins later', async () => {
    const place = await fresh();
    const database = await place.open();
    const prices = await PriceRepository.open({ database, defaults, now: () => 1000, onError });
    const general = await prices.set({ ...defaults, model: '*', perImage: microUsd(1) });
    await prices.set({ ...defaults, model: 'm', perImage: microUsd(2), validFrom: 5000 });
    expect(prices.list()).toEqual([general, { ...general, model: 'm' }]);
    prices.close();
    await database.destroy();
    await place.remove();
  });

  it('are those of the last writer, if a concurrent transaction changes the same catalogue entry', async () => {
    const place = await fresh();
    const database = await place.open();
    const prices = await PriceRepository.open({ database, defaults, now: () => 1000, onError });
    const at = (price: number) => ({ ...defaults, model: 'm', perImage: microUsd(price) });
    const entry = { display_name: 'M', quantization: 'q4', model_type: 'text' as const, min_memory_bytes: null };
    const write = async (transaction: Database): Promise<void> => {
      await transaction
        .insertInto('catalogue_models')
        .values({ id: 'm', ...entry, created_at: 1000, updated_at: 1000 })
        .onConflict((conflict) => conflict.column('id').doUpdateSet(entry))
        .execute();
    };
    await prices.set(at(7), write);
    let last: Promise<unknown> | undefined;
    await prices.set(at(8), async (transaction) => {
      await write(transaction);
      last = prices.set(at(7), write);
      if (dialect === 'postgres') await untilBlocked(database);
    });
    await last;
    expect((await prices.history('m')).map(({ perImage }) => perImage)).toEqual([7, 8, 7]);
    expect(prices.current('m').perImage).toBe(7);
    prices.close();
    await database.destroy();
    await place.remove();
  });

  it('are reloaded and announced only after a new version, or if the cache lacks the equal version', async () => {
    const place = await fresh();
    const database = await place.open();
    let writes = 0;
    const options = { database, defaults, now: () => 1000, onError, onWrite: () => void writes++ };
    const prices = await PriceRepository.open(options);
    const other = await PriceRepository.open(options);
    const refresh = vi.spyOn(prices, 'refresh');
    const price = { ...defaults, model: 'm', perImage: microUsd(8) };
    const stored = await prices.set(price);
    expect(await prices.set(price)).toEqual(stored);
    expect(refresh).toHaveBeenCalledTimes(1);
    expect(other.current('m').id).toBe('default');
    expect(await other.set(price)).toEqual(stored);
    expect(other.current('m')).toEqual(stored);
    expect(writes).toBe(1);
    other.close();
    prices.close();
    await database.destroy();
    await place.remove();
  });

  it('reject fractional rates, and the past', async () => {
    const place = await fresh();
    const database = await place.open();
    const prices = await PriceRepository.open({ database, defaults, now: () => 1000, onError });
    for (const bad of [-1, 0.5, Number.NaN, 2 ** 53]) {
      await expect(prices.set({ ...defaults, model: 'm', promptPerMillion: bad as never })).rejects.toMatchObject({ fault: 'invalid' });
    }
    await expect(prices.set({ ...defaults, model: 'm', validFrom: 999 })).rejects.toMatchObject({ fault: 'invalid' });
    await expect(prices.set({ ...defaults, model: '' })).rejects.toMatchObject({ fault: 'invalid' });
    expect(await prices.history('m')).toEqual([]);
    prices.close();
    await database.destroy();
    await place.remove();
  });
});
