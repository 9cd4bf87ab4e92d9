/** Estimates from earnings, and the CSV. */
import { chipPower, type MachineEarnings } from '@inference/protocol';
import { expect, it } from 'vitest';
import { electricityOf, forecastOf } from '../../src/account/earnings-forecast.js';
import { earningsCsv, forecastLines } from '../../src/cli/output/earnings-text.js';

const day = (earned: number, duty: number | null) => ({ day: '2026-01-01', earned, requests: 1, tokens: 1, images: 0, duty });

it('forecasts from complete days only', () => {
  expect(forecastOf({ days: [day(999, null), day(100, null), day(300, null)] })).toEqual({ from_days: 2, next_30_days_micro_usd: 6_000 });
  expect(forecastOf({ days: [day(999, null)] })).toBeNull();
  expect(forecastLines(null, null, false)).toHaveLength(1);
  expect(forecastLines(null, null, true).join(' ')).toContain('give --watts');
});

it('estimates electricity from the power of the chip and the busy time', () => {
  const power = chipPower('Apple M1 Max');
  expect(electricityOf({ days: [day(1, 1), day(1, 0.5), day(1, null)] }, power, 0.3)).toEqual({
    kwh_per_day: 1.512,
    cost_per_day_micro_usd: 453_600,
    from_days: 1,
  });
  expect(electricityOf({ days: [day(1, 1), day(1, 0.5)] }, chipPower('Apple M99'), 0.3)).toBeNull();
  expect(electricityOf({ days: [day(1, 1)] }, power, 0.3)).toBeNull();
});

it('exports a line per day and model', () => {
  const row = { day: '2026-01-01', requests: 2, prompt_tokens: 3, completion_tokens: 4, images: 0, earned_micro_usd: 1_234_567 };
  const earnings = {
    provider_id: 'p',
    time_zone: 'Europe/Berlin',
    data: [
      { ...row, model: 'a "b", c' },
      { ...row, model: '=SUM(A1)' },
    ],
  } as unknown as MachineEarnings;
  expect(earningsCsv(earnings)).toEqual([
    'day,time_zone,provider_id,model,requests,prompt_tokens,completion_tokens,images,earned_usd',
    '2026-01-01,Europe/Berlin,p,"a ""b"", c",2,3,4,0,1.234567',
    "2026-01-01,Europe/Berlin,p,'=SUM(A1),2,3,4,0,1.234567",
  ]);
});
