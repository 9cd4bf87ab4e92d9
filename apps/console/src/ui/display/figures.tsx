/** Formatting of money, numbers, durations and times: functions that return text, and the elements `Money`, `Count` and `Time`. */
import { useEffect, useState } from 'react';

const MICRO_USD_PER_USD = 1_000_000n;

/** Formats micro-USD as `$1,234.56`. Fractions of a cent show all their digits. */
export function formatUsd(microUsd: number): string {
  const negative = microUsd < 0;
  const micro = BigInt(Math.abs(microUsd));
  const dollars = (micro / MICRO_USD_PER_USD).toLocaleString('en-US');
  const fraction = String(micro % MICRO_USD_PER_USD).padStart(6, '0');
  const digits = fraction.replace(/0{1,4}$/, '');
  return `${negative ? '−' : ''}$${dollars}.${digits}`;
}

/** Like {@link formatUsd}, but rounds amounts of one dollar and more towards zero to whole cents. */
export function formatUsdRounded(microUsd: number): string {
  return formatUsd(Math.abs(microUsd) < 1_000_000 ? microUsd : Math.trunc(microUsd / 10_000) * 10_000);
}

interface MoneyProps {
  readonly microUsd: number;
  /** See {@link formatUsdRounded}. The tooltip shows the exact amount. */
  readonly rounded?: boolean;
}

export function Money({ microUsd, rounded = false }: MoneyProps) {
  if (!rounded) return <span className="number">{formatUsd(microUsd)}</span>;
  return (
    <span className="number" title={formatUsd(microUsd)}>
      {formatUsdRounded(microUsd)}
    </span>
  );
}

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export function formatCount(value: number): string {
  return WHOLE.format(value);
}

/** Formats large numbers as `12.3K`, for narrow space. */
export function formatShort(value: number): string {
  return Math.abs(value) < 10_000 ? WHOLE.format(value) : SHORT.format(value);
}

/** Formats a number with its noun: `1 request`, `2 requests`. */
export function pluralize(value: number, singular: string, plural = `${singular}s`): string {
  return `${formatCount(value)} ${value === 1 ? singular : plural}`;
}

/** Formats a rate, such as tokens per second: below 100 with one decimal place. */
export function formatRate(value: number): string {
  return value >= 100 ? WHOLE.format(value) : value.toFixed(1);
}

/** Formats a duration: `850 ms`, `1.8 s`, `2 min 5 s`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  // 59,950 ms and more would be rounded to 60.0 s.
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Formats a fraction of 1 as percent, such as `7.5%`. Null, a fraction of a zero total, is shown as a dash. */
export function formatShare(share: number | null): string {
  if (share === null) return '—';
  const value = share * 100;
  return `${value >= 10 || value === 0 ? Math.round(value) : value.toFixed(1)}%`;
}

/** Whole number. The short form has the exact number as its tooltip. */
export function Count({ value, short = false }: { readonly value: number; readonly short?: boolean }) {
  return (
    <span className="number" title={short ? formatCount(value) : undefined}>
      {short ? formatShort(value) : formatCount(value)}
    </span>
  );
}

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const EXACT = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' });
const FORMATS = {
  date: new Intl.DateTimeFormat('en', { dateStyle: 'medium' }),
  'date-time': new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' }),
  exact: EXACT,
} as const;
/** Units of relative times, in seconds. */
const RELATIVE_UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

interface TimeProps {
  /** ISO 8601, or milliseconds. */
  readonly at: string | number;
  /** `relative`: "3 minutes ago", updated every 30 seconds. `exact`: with seconds, for lists with several rows per minute. */
  readonly as?: 'relative' | keyof typeof FORMATS;
}

/** Time, relative or absolute, with the exact local time as tooltip. */
export function Time({ at, as = 'relative' }: TimeProps) {
  const date = new Date(at);
  useTick(as === 'relative');
  if (Number.isNaN(date.getTime())) return <span>unknown</span>;
  const text = as === 'relative' ? formatRelative(date.getTime() - Date.now()) : FORMATS[as].format(date);
  return (
    <time dateTime={date.toISOString()} title={EXACT.format(date)}>
      {text}
    </time>
  );
}

/** Formats a relative time: "3 minutes ago", "in 2 hours", "now". `ms` is negative for the past. */
function formatRelative(ms: number): string {
  const seconds = Math.round(ms / 1000);
  for (const [unit, length] of RELATIVE_UNITS) {
    if (Math.abs(seconds) >= length) return RELATIVE.format(Math.trunc(seconds / length), unit);
  }
  return Math.abs(seconds) < 10 ? 'now' : RELATIVE.format(seconds, 'second');
}

/** Renders the caller again every 30 seconds while `active`. */
function useTick(active: boolean): void {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => tick((count) => count + 1), 30_000);
    return () => clearInterval(timer);
  }, [active]);
}
