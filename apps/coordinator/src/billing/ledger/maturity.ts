/**
 * When earnings mature. Earnings of one UTC day mature together, at a midnight, when the last of them is `maturityDays` old. Pure.
 */
import { DAY_MS } from '../../database/ledger/activity.js';

/** First UTC day (days since 1970) whose earnings are still pending at `now`. Infinity where earnings mature at once. */
export function firstPendingDay(now: number, maturityDays: number): number {
  return maturityDays === 0 ? Number.POSITIVE_INFINITY : Math.floor(now / DAY_MS) - maturityDays;
}

/** When the earnings of a day mature, in milliseconds since 1970. */
export function maturesAt(day: number, maturityDays: number): number {
  return (day + 1 + maturityDays) * DAY_MS;
}
