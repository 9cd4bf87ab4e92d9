/** `forecastOf` and `electricityOf`: estimates for the command `earnings`, from the machine's recent days. Pure. */
import type { ChipPower } from '@inference/protocol';
import type { EarningsView } from './earnings.js';

const FORECAST_DAYS = 30;
const HOURS_PER_DAY = 24;

export interface EarningsForecast {
  /** Number of complete days that the forecast extrapolates. */
  readonly from_days: number;
  readonly next_30_days_micro_usd: number;
}

/** Extrapolates the mean of the complete days, which exclude `days[0]`, today. Returns null if they have no earnings. */
export function forecastOf({ days: [, ...complete] }: Pick<EarningsView, 'days'>): EarningsForecast | null {
  const earned = complete.reduce((sum, day) => sum + day.earned, 0);
  if (earned === 0) return null;
  return { from_days: complete.length, next_30_days_micro_usd: Math.round((earned / complete.length) * FORECAST_DAYS) };
}

export interface ElectricityEstimate {
  readonly kwh_per_day: number;
  readonly cost_per_day_micro_usd: number;
  /** Number of complete days whose activity is known. */
  readonly from_days: number;
}

/**
 * Estimates the machine's electricity: maximum power while serving, idle power in the rest of the day.
 *
 * @returns Null if the chip's power or the machine's activity is unknown.
 */
export function electricityOf(
  { days: [, ...complete] }: Pick<EarningsView, 'days'>,
  power: ChipPower | null,
  usdPerKwh: number,
): ElectricityEstimate | null {
  const shares = complete.flatMap(({ duty }) => duty ?? []);
  if (power === null || shares.length === 0) return null;
  const busy = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  const watts = power.idleWatts + busy * (power.maxWatts - power.idleWatts);
  const kwh = (watts * HOURS_PER_DAY) / 1000;
  return {
    kwh_per_day: Math.round(kwh * 1000) / 1000,
    cost_per_day_micro_usd: Math.round(kwh * usdPerKwh * 1e6),
    from_days: shares.length,
  };
}
