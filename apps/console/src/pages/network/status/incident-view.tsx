/** One incident with its updates, and past incidents by day. Times are in UTC and in the reader's time zone. */
import type { Incident } from '@inference/formats';
import { Badge, Card } from '../../../ui/display/page.js';
import type { Tone } from '../../../ui/feedback/note.js';

const IMPACTS: Readonly<Record<Incident['impact'], { readonly label: string; readonly tone: Tone }>> = {
  none: { label: 'No impact', tone: 'neutral' },
  minor: { label: 'Minor impact', tone: 'warn' },
  major: { label: 'Major impact', tone: 'warn' },
  critical: { label: 'Critical impact', tone: 'bad' },
};
const STATUSES: Readonly<Record<Incident['status'], string>> = {
  investigating: 'Investigating',
  identified: 'Identified',
  monitoring: 'Monitoring',
  resolved: 'Resolved',
  scheduled: 'Scheduled',
  in_progress: 'In progress',
  completed: 'Completed',
};
const COMPONENTS: Readonly<Record<Incident['components'][number], string>> = { api: 'API', payments: 'Payments', console: 'Console' };

/** Days without an incident are shown for this long. */
const RECENT_DAYS = 14;
const DAY_MS = 86_400_000;
const UTC = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });
const LOCAL = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });
const DATE = new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' });

export function IncidentView({ incident }: { readonly incident: Incident }) {
  const { title, kind, impact, status, components, models, starts_at, ends_at } = incident;
  const affected = [...components.map((id) => COMPONENTS[id]), ...models];
  return (
    <Card
      title={title}
      about={affected.length === 0 ? undefined : `Affects ${affected.join(', ')}.`}
      actions={
        <span className="row">
          <Badge tone={kind === 'maintenance' ? 'accent' : IMPACTS[impact].tone}>
            {kind === 'maintenance' ? 'Maintenance' : IMPACTS[impact].label}
          </Badge>
          <Badge>{STATUSES[status]}</Badge>
        </span>
      }
    >
      <div className="stack-small">
        {starts_at === null || ends_at === null ? null : (
          <p>
            Scheduled from <BothTimes at={starts_at} /> to <BothTimes at={ends_at} />.
          </p>
        )}
        <Updates incident={incident} />
      </div>
    </Card>
  );
}

function Updates({ incident: { updates } }: { readonly incident: Incident }) {
  return (
    <ol className="incident-updates">
      {updates.map(({ id, status, message, created_at }) => (
        <li key={id}>
          <p className="incident-message">
            <strong>{STATUSES[status]}:</strong> {message}
          </p>
          <p className="muted small">
            <BothTimes at={created_at} />
          </p>
        </li>
      ))}
    </ol>
  );
}

/** `Nov 25, 2026, 10:50 PM UTC (11:50 PM local)`; one time where both are the same. */
function BothTimes({ at }: { readonly at: string }) {
  const date = new Date(at);
  const local = LOCAL.format(date);
  const utc = UTC.format(date);
  return <time dateTime={at}>{local === utc ? `${utc} UTC` : `${utc} UTC (${local} your time)`}</time>;
}

/** `now`: ISO 8601. The last two weeks, and before only days with an incident. */
export function PastIncidents({ incidents, now }: { readonly incidents: readonly Incident[]; readonly now: string }) {
  const byDay = new Map<string, Incident[]>();
  for (let index = 0; index < RECENT_DAYS; index++) byDay.set(dayOf(new Date(Date.parse(now) - index * DAY_MS).toISOString()), []);
  for (const incident of incidents) {
    const day = dayOf(incident.created_at);
    byDay.set(day, [...(byDay.get(day) ?? []), incident]);
  }
  return (
    <Card title="Past incidents" about="By the day of the report, in UTC.">
      <ol className="past-days">
        {[...byDay]
          .sort(([a], [b]) => (a < b ? 1 : -1))
          .map(([day, ofDay]) => (
            <li key={day}>
              <h3>{DATE.format(new Date(day))}</h3>
              {ofDay.length === 0 ? <p className="muted">No incidents.</p> : null}
              {ofDay.map((incident) => (
                <div key={incident.id} className="stack-small">
                  <h4>{incident.title}</h4>
                  <Updates incident={incident} />
                </div>
              ))}
            </li>
          ))}
      </ol>
    </Card>
  );
}

function dayOf(iso: string): string {
  return iso.slice(0, 10);
}
