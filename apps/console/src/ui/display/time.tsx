/** Times, relative or absolute, with the exact local time as tooltip. */
import { useEffect, useState } from 'react';

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const EXACT = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' });
const DATE = new Intl.DateTimeFormat('en', { dateStyle: 'medium' });
const SHORT = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });
const STEPS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

interface TimeProps {
  /** ISO 8601, or milliseconds. */
  readonly at: string | number;
  /** `relative`: "3 minutes ago", updated continuously. */
  readonly as?: 'relative' | 'date' | 'date-time';
}

export function Time({ at, as = 'relative' }: TimeProps) {
  const date = new Date(at);
  useMinute(as === 'relative');
  if (Number.isNaN(date.getTime())) return <span>unknown</span>;
  const text = as === 'relative' ? relative(date.getTime() - Date.now()) : (as === 'date' ? DATE : SHORT).format(date);
  return (
    <time dateTime={date.toISOString()} title={EXACT.format(date)}>
      {text}
    </time>
  );
}

/** "3 minutes ago", "in 2 hours", "now". `ms` is negative in the past. */
function relative(ms: number): string {
  const seconds = Math.round(ms / 1000);
  for (const [unit, length] of STEPS) {
    if (Math.abs(seconds) >= length) return RELATIVE.format(Math.trunc(seconds / length), unit);
  }
  return Math.abs(seconds) < 10 ? 'now' : RELATIVE.format(seconds, 'second');
}

/** Re-renders every 30 s. */
function useMinute(active: boolean): void {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => tick((count) => count + 1), 30_000);
    return () => clearInterval(timer);
  }, [active]);
}
