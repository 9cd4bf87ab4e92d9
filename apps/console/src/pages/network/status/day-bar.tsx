/**
 * `DayBar`: uptime per day, with one bar per day.
 *
 * Pointer and arrow keys select a day, whose details appear below the bars. Screen readers announce the same text.
 */
import { type KeyboardEvent, type PointerEvent, useState } from 'react';
import { formatUptime } from '../../../features/models/model-figures.js';
import { pluralize } from '../../../ui/display/figures.js';

interface DayBarProps {
  readonly label: string;
  /** Uptime per UTC day from 0 to 1, oldest first, the UTC day of `at` last; null: no records. */
  readonly days: readonly (number | null)[];
  /** Time at which `days` were computed. */
  readonly at: string;
  /** Minutes of downtime per day. Null for models, which have no such record. */
  readonly downMinutes: readonly (number | null)[] | null;
  /** Uptime of the whole period, as text. */
  readonly uptime: string;
}

const DAY = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const DAY_MS = 86_400_000;
const LEVELS = ['none', 'good', 'warn', 'bad'] as const;
/** Height of the bars by level, so that colour is not the only difference. */
const HEIGHTS: Readonly<Record<(typeof LEVELS)[number], number>> = { none: 0.3, good: 1, warn: 0.75, bad: 0.5 };

export function DayBar({ label, days, at, downMinutes, uptime }: DayBarProps) {
  const [chosen, setChosen] = useState<number | null>(null);
  const last = days.length - 1;
  const day = Math.min(chosen ?? last, last);
  const text = dayText(day);
  const choose = (index: number): void => setChosen(Math.min(last, Math.max(0, index)));
  const onPointerMove = ({ currentTarget, clientX }: PointerEvent): void => {
    const { left, width } = currentTarget.getBoundingClientRect();
    choose(Math.floor(((clientX - left) / width) * days.length));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = { ArrowLeft: day - 1, ArrowDown: day - 1, ArrowRight: day + 1, ArrowUp: day + 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    choose(next);
  };
  function nameOf(index: number): string {
    return DAY.format(Date.parse(at) - (last - index) * DAY_MS);
  }
  function dayText(index: number): string {
    const share = days[index] ?? null;
    const name = nameOf(index);
    if (share === null) return `${name}: no records`;
    const down = downMinutes?.[index] ?? 0;
    return `${name}: ${formatUptime(share)}${down > 0 ? `, ${pluralize(down, 'minute')} down` : ''}`;
  }
  if (days.length === 0) return <p className="muted small">No records yet.</p>;
  return (
    <div>
      <div
        className="day-bar"
        role="slider"
        tabIndex={0}
        aria-label={`${label}, uptime per day`}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={day}
        aria-valuetext={text}
        onPointerMove={onPointerMove}
        onPointerLeave={() => setChosen(null)}
        onBlur={() => setChosen(null)}
        onKeyDown={onKeyDown}
      >
        <svg viewBox={`0 0 ${days.length} 1`} preserveAspectRatio="none" aria-hidden="true">
          {LEVELS.map((level) => (
            <path key={level} data-level={level} d={barsOf(days, level)} />
          ))}
          {chosen === null ? null : <rect className="day-chosen" x={day} width={1} height={1} />}
        </svg>
      </div>
      <p className="day-legend">
        <span>{nameOf(0)}</span>
        <span>{chosen === null ? uptime : text}</span>
        <span>{nameOf(last)}</span>
      </p>
    </div>
  );
}

function barsOf(days: readonly (number | null)[], level: (typeof LEVELS)[number]): string {
  const height = HEIGHTS[level];
  return days.map((share, index) => (levelOf(share) === level ? `M${index + 0.1} ${1 - height}h.8v${height}h-.8z` : '')).join('');
}

function levelOf(share: number | null): (typeof LEVELS)[number] {
  if (share === null) return 'none';
  return share >= 0.99 ? 'good' : share >= 0.9 ? 'warn' : 'bad';
}
