/** `/status`: public status page with state and daily uptime of components and models, incidents and maintenance. */
import './status.css';
import type { ComponentState, NetworkStatus, StatusComponent, StatusModel } from '@inference/formats';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useDeferredValue } from 'react';
import { api } from '../../../api/api-client.js';
import { IncidentView, PastIncidents } from '../../../features/incidents/incident-view.js';
import { formatUptime } from '../../../features/models/model-figures.js';
import { Time } from '../../../ui/display/figures.js';
import { Badge, Card, PageHeader } from '../../../ui/display/page.js';
import { Loaded } from '../../../ui/feedback/error-state.js';
import { Note, type Tone } from '../../../ui/feedback/note.js';
import { EmptyState, Skeleton } from '../../../ui/feedback/placeholders.js';
import { Field } from '../../../ui/forms/field.js';
import { useUrlText } from '../../../ui/navigation/url-state.js';
import { DayBar } from './day-bar.js';

/** Twice the time for which the coordinator caches the status. */
const REFRESH_MS = 60_000;

const INDICATOR_TONES: Readonly<Record<NetworkStatus['status']['indicator'], Tone>> = {
  none: 'good',
  minor: 'warn',
  major: 'warn',
  critical: 'bad',
  maintenance: 'accent',
};

const STATES: Readonly<Record<ComponentState, { readonly label: string; readonly tone: Tone }>> = {
  operational: { label: 'Operational', tone: 'good' },
  degraded_performance: { label: 'Degraded performance', tone: 'warn' },
  partial_outage: { label: 'Partial outage', tone: 'warn' },
  major_outage: { label: 'Major outage', tone: 'bad' },
  under_maintenance: { label: 'Under maintenance', tone: 'accent' },
};

export function Page() {
  const [search, setSearch] = useUrlText('search');
  const searched = useDeferredValue(search.slice(0, 128));
  const status = useQuery({
    queryKey: ['public', 'status', searched],
    queryFn: ({ signal }) => api.get<NetworkStatus>('/v1/network/status', { query: { search: searched || null }, signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  });
  const { data } = status;
  return (
    <>
      <PageHeader title="Status" about="Whether the network works now, and how it worked in the last 90 days." />
      <Loaded query={status} subject="The status">
        <div className="stack">
          {data === undefined ? <Skeleton height="2.875rem" /> : <Overall status={data} />}
          {data?.open_incidents.map((incident) => (
            <IncidentView key={incident.id} incident={incident} />
          ))}
          {data?.maintenance.map((incident) => (
            <IncidentView key={incident.id} incident={incident} />
          ))}
          <Card title="Components" about="Share of the minutes of each day, in UTC, in which the component ran.">
            {data === undefined ? (
              <Skeleton height="20.125rem" />
            ) : (
              <ul className="status-list">
                {data.components.map((component) => (
                  <StatusRow key={component.id} row={component} at={data.updated_at} label={component.name} />
                ))}
              </ul>
            )}
          </Card>
          <Card title="Models" about="Share of the checks of each day at which a machine served the model. Models of the last 7 days.">
            <div className="stack-small">
              <div className="status-search">
                <Field label="Search" type="search" maxLength={128} value={search} onChange={(event) => setSearch(event.target.value)} />
              </div>
              {data === undefined ? <Skeleton height="4.75rem" /> : <Models status={data} search={searched} />}
            </div>
          </Card>
          {data === undefined ? null : <PastIncidents incidents={data.past_incidents} open={data.open_incidents} now={data.updated_at} />}
          <p className="muted small">
            {data === undefined ? null : (
              <>
                Computed <Time at={data.updated_at} />.{' '}
              </>
            )}
            <a href="/status.atom">Atom feed</a>
          </p>
        </div>
      </Loaded>
    </>
  );
}

function Overall({ status: { status } }: { readonly status: NetworkStatus }) {
  return (
    <Note tone={INDICATOR_TONES[status.indicator]}>
      <strong role="status">{status.description}</strong>
    </Note>
  );
}

function Models({ status: { models, model_count, updated_at: at }, search }: { readonly status: NetworkStatus; readonly search: string }) {
  if (models.length === 0) {
    return search === '' ? (
      <EmptyState title="No models yet">Models appear here a minute after a machine first serves them.</EmptyState>
    ) : (
      <EmptyState title="No models match">Check the spelling, or clear the search.</EmptyState>
    );
  }
  return (
    <>
      <ul className="status-list">
        {models.map((model) => (
          <StatusRow key={model.id} row={model} at={at} label={model.id} />
        ))}
      </ul>
      {model_count > models.length ? (
        <p className="muted small">
          The first {models.length} of {model_count} models. Search to find others.
        </p>
      ) : null}
    </>
  );
}

interface StatusRowProps {
  readonly row: StatusComponent | StatusModel;
  /** Time at which the status was computed. */
  readonly at: string;
  readonly label: string;
}

function StatusRow({ row, at, label }: StatusRowProps) {
  const isModel = !('name' in row);
  const { tone, label: state } = STATES[row.state];
  return (
    <li className="status-row">
      <div className="status-head">
        <span className="status-name">{label}</span>
        <Badge tone={tone}>{isModel && row.state === 'major_outage' ? 'Unavailable' : state}</Badge>
      </div>
      <DayBar
        label={label}
        days={row.days}
        at={at}
        downMinutes={'down_minutes' in row ? row.down_minutes : null}
        uptime={row.uptime === null ? 'no records' : `${formatUptime(row.uptime)} uptime`}
      />
    </li>
  );
}
