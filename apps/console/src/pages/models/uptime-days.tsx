/** `UptimeDays`: one bar per day. Height and colour show the share of checks at which the model was served. */
import type { Uptime } from '@inference/formats';
import { formatUptime } from '../../features/models/model-figures.js';

const DAY = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });

export function UptimeDays({ uptime: { days, since } }: { readonly uptime: Uptime }) {
  return (
    <div className="stack-small">
      <ol className="uptime-days" aria-label="Uptime per day, the oldest first">
        {days.map(({ date, share }) => {
          const text = `${DAY.format(new Date(date))}: ${share === null ? 'no checks' : formatUptime(share)}`;
          return (
            <li key={date} title={text} data-level={levelOf(share)}>
              <span className="uptime-bar" style={{ height: `${share === null ? 100 : Math.max(8, 100 * share)}%` }} aria-hidden="true" />
              <span className="visually-hidden">{text}</span>
            </li>
          );
        })}
      </ol>
      <p className="muted small">First checked on {DAY.format(new Date(since))}. Grey: no checks.</p>
    </div>
  );
}

function levelOf(share: number | null): 'none' | 'good' | 'warn' | 'bad' {
  if (share === null) return 'none';
  return share >= 0.99 ? 'good' : share >= 0.9 ? 'warn' : 'bad';
}
