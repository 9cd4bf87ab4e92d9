/** `forecastOf` and `electricityOf`: estimates for the command `earnings`, from this machine's recent days. */
import type { ChipPower } from '@inference/protocol';
import type { EarningsView } from './earnings.js';

const FORECAST_DAYS = 30;
const HOURS_PER_DAY = 24;

export interface EarningsForecast {
  /** Number of complete days that the forecast extrapolates. */
  readonly from_days: number;
  readonly next_30_days_micro_usd: number;
}

/** Skips the first day, today. Returns null without earnings. */
export function forecastOf({ days: [, ...complete] }: Pick<EarningsView, 'days'>): EarningsForecast | null {
  const earned = complete.reduce((sum, day) => sum + day.earned, 0);
  if (earned === 0) return null;
  return { from_days: complete.length, next_30_days_micro_usd: Math.round((earned / complete.length) * FORECAST_DAYS) };
}

export interface ElectricityEstimate {
  readonly kwh_per_day: number;
  readonly cost_per_day_micro_usd: number;
  /** Number of complete days with a known duty cycle. */
  readonly from_days: number;
}

/**
 * Estimates the electricity of a whole day: maximum power for the share of the duty cycle, idle power for the rest.
 *
 * The duty cycle is the share of the connected time with running jobs. Days without one are left out. The estimate assumes that the machine
 * is on, and equally busy, all day.
 *
 * @returns Null if the chip's power or every duty cycle is unknown.
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
