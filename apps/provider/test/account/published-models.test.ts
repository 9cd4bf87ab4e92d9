/** Demand and earnings that the public statistics of a network imply. */
import { expect, it } from 'vitest';
import { demandByModel, estimatedEarningsPerDay } from '../../src/account/published-models.js';

const stats = {
  total_prompt_tokens: 750,
  total_completion_tokens: 250,
  providers: [
    { decode_tps: 30, tokens_generated: 600, models: ['busy', 'calm'] },
    { decode_tps: 0, tokens_generated: 100, models: ['busy'] },
  ],
};
const prices = ['busy', 'calm', 'unserved'].map((model) => ({ model, prompt_per_million: 100_000, completion_per_million: 500_000 }));

it('divides the tokens of a day by the tokens that the providers of each model generated', () => {
  const demand = demandByModel(stats, prices, 7_000_000);
  expect(demand.get('busy')).toEqual({
    tokensPerDay: 4_000_000,
    speeds: [30],
    providerCount: 2,
    completionShare: 0.25,
    pricePerMillion: 200_000,
  });
  expect(demand.get('calm')?.tokensPerDay).toBe(3_000_000);
  expect(demand.get('unserved')).toMatchObject({ tokensPerDay: 0, providerCount: 0 });
});

it('shares the demand by speed, up to the tokens of one stream', () => {
  const busy = demandByModel(stats, prices, 7_000_000).get('busy');
  if (busy === undefined) throw new Error('no demand');
  // The provider without a measured speed counts with this machine's own.
  expect(estimatedEarningsPerDay(busy, 15)).toBe((4 * 200_000 * 15) / 60);
  expect(estimatedEarningsPerDay({ ...busy, tokensPerDay: 1e12 }, 15)).toBe(Math.round(((15 * 86_400) / 0.25) * 0.2));
  expect(estimatedEarningsPerDay({ ...busy, tokensPerDay: 0 }, 15)).toBe(0);
});
