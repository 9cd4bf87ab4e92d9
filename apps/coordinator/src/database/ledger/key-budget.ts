/**
 * Budgets of API keys per calendar day, week or month (UTC), and the spending sums that are compared with the budgets.
 *
 * Each key has three sums: for the newest day with spending (`countedDay`), for its week and for its month.
 */

import { type MicroUsd, microUsd } from '../../billing/micro-usd.js';
import { DAY_MS } from '../../time-units.js';
import type { BudgetPeriod } from '../tables/accounts.js';

export const BUDGET_PERIODS = ['day', 'week', 'month'] as const satisfies readonly BudgetPeriod[];

export interface KeyBudget {
  readonly amount: MicroUsd;
  readonly period: BudgetPeriod;
}

/** Spending of a key in the day, week and month of `countedDay`. */
export interface PeriodSpending {
  /** Newest day with spending, in days since 1970 (UTC). */
  readonly countedDay: number;
  readonly daySpent: MicroUsd;
  readonly weekSpent: MicroUsd;
  readonly monthSpent: MicroUsd;
}

/** Column of `key_spend` with the sum of a period. */
export const PERIOD_COLUMNS = {
  day: 'day_spent',
  week: 'week_spent',
  month: 'month_spent',
} as const satisfies Readonly<Record<BudgetPeriod, string>>;

/** Weekday of 1 January 1970, a Thursday, counted from Monday = 0 (ISO 8601). */
const WEEKDAY_OF_DAY_0 = 3;

/** First day of the period that contains a day, in days since 1970. */
export function periodStart(period: BudgetPeriod, day: number): number {
  switch (period) {
    case 'day':
      return day;
    case 'week':
      return day - ((day + WEEKDAY_OF_DAY_0) % 7);
    case 'month':
      return firstOfMonth(day, 0);
    default:
      return period satisfies never;
  }
}

/** First day of the following period, in days since 1970. */
export function nextPeriodStart(period: BudgetPeriod, day: number): number {
  switch (period) {
    case 'day':
      return day + 1;
    case 'week':
      return periodStart('week', day) + 7;
    case 'month':
      return firstOfMonth(day, 1);
    default:
      return period satisfies never;
  }
}

/** Days since 1970 of a time in milliseconds since 1970. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

/** Spending in the period that contains `day`, or `countedDay` if that is later (another coordinator's clock). */
export function spentInPeriod(spending: PeriodSpending, period: BudgetPeriod, day: number): MicroUsd {
  if (spending.countedDay < periodStart(period, day)) return microUsd(0);
  switch (period) {
    case 'day':
      return spending.daySpent;
    case 'week':
      return spending.weekSpent;
    case 'month':
      return spending.monthSpent;
    default:
      return period satisfies never;
  }
}

/** Adds a cost. A cost of an earlier day is added to `countedDay`, so that sums never decrease within a period. */
export function addSpending(spending: PeriodSpending, cost: MicroUsd, day: number): PeriodSpending {
  const countedDay = Math.max(day, spending.countedDay);
  const isSameDay = countedDay === spending.countedDay;
  const sumOf = (period: BudgetPeriod, sum: MicroUsd): MicroUsd =>
    microUsd((isSameDay ? sum : spentInPeriod(spending, period, countedDay)) + cost);
  return {
    countedDay,
    daySpent: sumOf('day', spending.daySpent),
    weekSpent: sumOf('week', spending.weekSpent),
    monthSpent: sumOf('month', spending.monthSpent),
  };
}

function firstOfMonth(day: number, monthsLater: number): number {
  const date = new Date(day * DAY_MS);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + monthsLater) / DAY_MS;
}
