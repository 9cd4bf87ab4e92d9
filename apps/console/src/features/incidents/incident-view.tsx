/** `IncidentView`: card of one incident or maintenance. `PastIncidents`: card of the status page with one entry per day. */
import './incidents.css';
import type { Incident, IncidentUpdate } from '@inference/formats';
import type { ReactNode } from 'react';
import { Badge, Card } from '../../ui/display/page.js';
import { COMPONENTS, IMPACTS, STATUSES } from './incident-texts.js';

/** Number of days, including today, that are listed even without an incident. */
const RECENT_DAYS = 14;
const DAY_MS = 86_400_000;
const UTC = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });
const LOCAL = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });
const DATE = new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' });

interface IncidentViewProps {
  readonly incident: Incident;
  /** Buttons below the updates, for operators. */
  readonly actions?: ReactNode;
  /** Button next to each update, for operators. */
  readonly updateAction?: (update: IncidentUpdate) => ReactNode;
}

export function IncidentView({ incident, actions, updateAction }: IncidentViewProps) {
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
        <IncidentUpdates incident={incident} action={updateAction} />
        {actions === undefined ? null : <div className="row">{actions}</div>}
      </div>
    </Card>
  );
}

interface IncidentUpdatesProps {
  readonly incident: Incident;
  readonly action?: IncidentViewProps['updateAction'] | undefined;
}

/** Updates of an incident, newest first, as the API returns them. */
export function IncidentUpdates({ incident: { updates }, action }: IncidentUpdatesProps) {
  return (
    <ol className="incident-updates">
      {updates.map((update) => (
        <li key={update.id}>
          <p className="incident-message">
            <strong>{STATUSES[update.status]}:</strong> {update.message}
          </p>
          <div className="row">
            <p className="muted small">
              <BothTimes at={update.created_at} />
            </p>
            {action?.(update)}
          </div>
        </li>
      ))}
    </ol>
  );
}

/** Shows a time in UTC and, if different, in the user's time zone. */
function BothTimes({ at }: { readonly at: string }) {
  const date = new Date(at);
  const local = LOCAL.format(date);
  const utc = UTC.format(date);
  return <time dateTime={at}>{local === utc ? `${utc} UTC` : `${utc} UTC (${local} your time)`}</time>;
}

interface PastIncidentsProps {
  readonly incidents: readonly Incident[];
  readonly open: readonly Incident[];
  /** ISO 8601. */
  readonly now: string;
}

/** Lists the last {@link RECENT_DAYS} days, and earlier days on which a past incident began. `open` incidents appear only as ongoing. */
export function PastIncidents({ incidents, open, now }: PastIncidentsProps) {
  const incidentsByDay = new Map<string, Incident[]>();
  for (let index = 0; index < RECENT_DAYS; index++) incidentsByDay.set(dayOf(new Date(Date.parse(now) - index * DAY_MS).toISOString()), []);
  for (const incident of incidents) {
    const day = firstDayOf(incident);
    incidentsByDay.set(day, [...(incidentsByDay.get(day) ?? []), incident]);
  }
  return (
    <Card title="Past incidents" about="By the first day, in UTC.">
      <ol className="past-days">
        {[...incidentsByDay]
          .sort(([a], [b]) => (a < b ? 1 : -1))
          .map(([day, ofDay]) => (
            <li key={day}>
              <h3>{DATE.format(new Date(day))}</h3>
              {ofDay.length === 0 ? <p className="muted">{textOfQuietDay(day, [...open, ...incidents])}</p> : null}
              {ofDay.map((incident) => (
                <div key={incident.id} className="stack-small">
                  <h4>{incident.title}</h4>
                  <IncidentUpdates incident={incident} />
                </div>
              ))}
            </li>
          ))}
      </ol>
    </Card>
  );
}

/** Text for a day on which no past incident began, with the incidents that were open then. */
function textOfQuietDay(day: string, incidents: readonly Incident[]): string {
  const ongoing = incidents.filter((incident) => {
    const lastDay = incident.resolved_at === null ? day : dayOf(incident.resolved_at);
    return firstDayOf(incident) <= day && day <= lastDay;
  });
  return ongoing.length === 0 ? 'No incidents.' : `Ongoing: ${ongoing.map(({ title }) => title).join(', ')}.`;
}

function firstDayOf({ starts_at, created_at }: Incident): string {
  return dayOf(starts_at ?? created_at);
}

function dayOf(iso: string): string {
  return iso.slice(0, 10);
}
