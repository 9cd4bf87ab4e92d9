/** `/network`: current totals, activity, providers and models of the network. */
import './network.css';
import type { Stats as NetworkStats } from '@inference/formats';
import { useState } from 'react';
import { Legend } from '../../features/trust/legend.js';
import { MachineVerdictBadge } from '../../features/trust/verdict-badge.js';
import { PATHS } from '../../routing/paths.js';
import { Chart } from '../../ui/chart/chart.js';
import { Count, formatCount, formatShort, Money } from '../../ui/display/figures.js';
import { Card, PageHeader, Stat, Stats } from '../../ui/display/page.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { EmptyState, Skeleton } from '../../ui/feedback/placeholders.js';
import { LinkButton } from '../../ui/forms/button.js';
import { Segmented } from '../../ui/forms/field.js';
import { useStats, useTotals } from './queries.js';
import { byChip, byStatus, type ModelRow, modelRows, type Share } from './summaries.js';

export function Page() {
  const stats = useStats();
  const { data } = stats;
  return (
    <>
      <PageHeader
        title="Network overview"
        about="People's Macs serve AI models to clients who can verify every response. Updated every minute."
        actions={<LinkButton href={PATHS.providers}>Check a provider</LinkButton>}
      />
      <div className="stack">
        <Loaded query={stats} subject="The network" staleTitle="These figures are out of date.">
          <LiveTotals stats={data} />
          <Activity stats={data} />
          <div className="columns">
            <Card title="Providers by chip">
              <Breakdown rows={data && byChip(data.providers)} />
            </Card>
            <Card title="Providers by state">
              <Breakdown rows={data && byStatus(data.providers)} />
            </Card>
          </div>
          <Models stats={data} />
          <Legend topics={['verdicts', 'levels']} />
        </Loaded>
      </div>
    </>
  );
}

function LiveTotals({ stats }: { readonly stats: NetworkStats | undefined }) {
  const day = useTotals('24h').data;
  const online = stats?.providers.filter(({ status }) => status === 'online').length;
  return (
    <Stats>
      <Stat
        label="Providers online"
        value={online === undefined ? undefined : <Count value={online} />}
        hint={stats === undefined ? null : `${formatShort(stats.total_memory_gb)} GB memory`}
      />
      <Stat
        label="Requests, 24 h"
        value={day && <Count value={day.jobs} short />}
        hint={stats === undefined ? null : `${formatShort(stats.total_requests)} in total`}
      />
      <Stat
        label="Tokens, 24 h"
        value={day && <Count value={day.tokens} short />}
        hint={stats === undefined ? null : `${formatShort(stats.total_tokens)} in total`}
      />
      <Stat
        label="Earned, 24 h"
        value={day && <Money microUsd={day.earnings_micro_usd} rounded />}
        hint={day === undefined ? null : `${formatCount(day.active_accounts)} active ${day.active_accounts === 1 ? 'account' : 'accounts'}`}
      />
    </Stats>
  );
}

type Metric = 'requests' | 'tokens';

function Activity({ stats }: { readonly stats: NetworkStats | undefined }) {
  const [metric, setMetric] = useState<Metric>('requests');
  const minutes = stats?.time_series;
  const labels = minutes?.map(({ timestamp }) => TIME.format(new Date(timestamp))) ?? [];
  const total = minutes?.reduce((sum, minute) => sum + minute.requests, 0);
  return (
    <Card
      title="The last 30 minutes"
      about={total === undefined ? 'Per minute' : total === 0 ? 'No requests in this period' : `${formatCount(total)} requests, per minute`}
      actions={
        <Segmented
          label="Metric"
          value={metric}
          onValue={setMetric}
          options={[
            { value: 'requests', label: 'Requests' },
            { value: 'tokens', label: 'Tokens' },
          ]}
        />
      }
    >
      {metric === 'requests' ? (
        <Chart
          title="Requests per minute over the last 30 minutes."
          kind="bar"
          labels={labels}
          labelHeading="Minute"
          series={[{ label: 'Requests', values: minutes?.map(({ requests }) => requests) ?? [] }]}
        />
      ) : (
        <Chart
          title="Tokens per minute over the last 30 minutes."
          kind="bar"
          stacked
          labels={labels}
          labelHeading="Minute"
          series={[
            { label: 'Input tokens', values: minutes?.map((minute) => minute.prompt_tokens) ?? [] },
            { label: 'Output tokens', values: minutes?.map((minute) => minute.completion_tokens) ?? [] },
          ]}
        />
      )}
    </Card>
  );
}

const TIME = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

function Breakdown({ rows }: { readonly rows: ReturnType<typeof byChip> | undefined }) {
  if (rows === undefined) return <Skeleton height="4.25rem" />;
  if (rows.length === 0) return <p className="muted breakdown-empty">No provider is connected.</p>;
  return <Bars rows={rows} />;
}

const MODEL_COLUMNS: readonly Column<ModelRow>[] = [
  { key: 'model', header: 'Model', rowHeader: true, cell: ({ model }) => <span className="model-name">{model}</span> },
  { key: 'providers', header: 'Providers', numeric: true, cell: ({ providers }) => <Count value={providers} /> },
  {
    key: 'trust',
    header: 'Trust',
    cell: ({ hardware, providers }) => (
      <span className="row-tight">
        {hardware > 0 ? <MachineVerdictBadge trustLevel="hardware" count={hardware} /> : null}
        {providers - hardware > 0 ? <MachineVerdictBadge trustLevel="self_signed" count={providers - hardware} /> : null}
      </span>
    ),
  },
];

function Models({ stats }: { readonly stats: NetworkStats | undefined }) {
  return (
    <Card title="Models" about="Available now, with the coordinator's verdict on the serving machines." flush>
      <Table
        caption="Available models"
        columns={MODEL_COLUMNS}
        rows={stats && modelRows(stats)}
        rowKey={({ model }) => model}
        loadingRows={2}
        stacked
        empty={
          <EmptyState title="No models available">
            No provider with a model is online. Requests wait briefly, then are refused without charge.
          </EmptyState>
        }
      />
    </Card>
  );
}

/** Maximum rows of their own. Two or more further rows are combined into one. */
const MAX_ROWS = 8;

function Bars({ rows }: { readonly rows: readonly Share[] }) {
  const total = rows.reduce((sum, { count }) => sum + count, 0);
  const rest = rows.slice(MAX_ROWS);
  const visible =
    rest.length < 2
      ? rows
      : [...rows.slice(0, MAX_ROWS), { label: `${rest.length} others`, count: rest.reduce((sum, { count }) => sum + count, 0) }];
  return (
    <ul className="bars">
      {visible.map(({ label, count }) => (
        <li key={label} className="bar-row">
          <span className="bar-label">{label}</span>
          <span className="number">{formatCount(count)}</span>
          <svg className="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
            <rect width={total === 0 ? 0 : (100 * count) / total} height={1} />
          </svg>
        </li>
      ))}
    </ul>
  );
}
