/** `/admin/providers`: all connected machines, and machines that are quarantined or restricted. */
import type { AdminProvider, AdminProviderList } from '@inference/formats';
import { useState } from 'react';
import { Link } from 'wouter';
import { shortId } from '../../../features/machines/machine-name.js';
import { MachineStatusBadge } from '../../../features/machines/machine-status.js';
import { gateText, statusLabel } from '../../../features/machines/status-texts.js';
import { MachineVerdictBadge } from '../../../features/trust/verdict-badge.js';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { formatRate, Time } from '../../../ui/display/figures.js';
import { Card, PageHeader } from '../../../ui/display/page.js';
import { type Column, Table } from '../../../ui/display/table.js';
import { Loaded } from '../../../ui/feedback/error-state.js';
import { EmptyState } from '../../../ui/feedback/placeholders.js';
import { Button } from '../../../ui/forms/button.js';
import { Field, Select } from '../../../ui/forms/field.js';
import { useProviders } from '../queries.js';
import { filterProviders, STATES, type StateFilter } from './provider-filter.js';
import { restrictionEnd, restrictionReason } from './restriction-texts.js';

/** Number of rows shown initially, and added per click. */
const ROWS = 100;

export function Page() {
  const providers = useProviders();
  const { data } = providers;
  const [text, setText] = useState('');
  const [state, setState] = useState<StateFilter>('all');
  const [max, setMax] = useState(ROWS);
  const found = data === undefined ? undefined : filterProviders(data.providers, { text, state });
  return (
    <>
      <PageHeader title="All machines" about="Machines connected to the network, and machines that are quarantined or restricted." />
      <div className="stack">
        <Loaded query={providers} subject="The machines" staleTitle="The information below is out of date.">
          <ExcludedMachines list={data} />
          <Card title={data === undefined ? 'Connected' : `Connected: ${data.providers.length}`} flush>
            <div className="filters">
              <Field
                label="Search"
                hint="Serial number, provider ID, model or agent"
                type="search"
                value={text}
                onChange={(event) => setText(event.target.value)}
              />
              <Select label="State" options={STATES} value={state} onValue={setState} />
            </div>
            <Table
              caption="Connected machines"
              columns={COLUMNS}
              rows={found?.slice(0, max)}
              rowKey={({ session_id }) => session_id}
              empty={
                data?.providers.length === 0 ? (
                  <EmptyState title="No machine is connected">Requests wait or are refused until one connects.</EmptyState>
                ) : (
                  <EmptyState title="No machines match">Change the search or the state filter.</EmptyState>
                )
              }
              stacked
            />
            {found !== undefined && found.length > max ? (
              <div className="more">
                <Button onClick={() => setMax(max + ROWS)}>Show more of {found.length}</Button>
              </div>
            ) : null}
          </Card>
        </Loaded>
      </div>
    </>
  );
}

const COLUMNS: readonly Column<AdminProvider>[] = [
  {
    key: 'serial',
    header: 'Machine',
    rowHeader: true,
    cell: ({ provider_id, serial_number }) => (
      <Link className="breakable" href={pathWithId(PATHS.adminProvider, provider_id)}>
        {serial_number}
      </Link>
    ),
  },
  { key: 'state', header: 'State', cell: (provider) => <MachineStatusBadge status={statusLabel(provider.status)} /> },
  {
    key: 'trust',
    header: 'Trust',
    cell: ({ trust_level, simulated }) => <MachineVerdictBadge trustLevel={trust_level} simulated={simulated} />,
  },
  { key: 'models', header: 'Models', cell: ({ models }) => models.join(', ') || '—' },
  { key: 'jobs', header: 'Jobs', numeric: true, cell: ({ running_jobs, slots }) => `${running_jobs} of ${slots}` },
  { key: 'rate', header: 'Tokens/s', numeric: true, cell: ({ decode_tps }) => (decode_tps === null ? '—' : formatRate(decode_tps)) },
  {
    key: 'reputation',
    header: 'Reputation',
    cell: ({ reputation: { state, recent_failures } }) =>
      state === 'well' ? (recent_failures === 0 ? 'good' : `${recent_failures} failures`) : gateText(state),
  },
  { key: 'agent', header: 'Agent', cell: ({ agent }) => agent.version },
  { key: 'since', header: 'Connected', cell: ({ registered_at }) => <Time at={registered_at} /> },
];

interface ExcludedRow {
  readonly provider_id: string;
  readonly by: 'Operator' | 'Reputation';
  readonly why: string;
  readonly since: string | number | null;
  /** Milliseconds since 1970, or the event that ends the exclusion. */
  readonly until: number | string;
}

function ExcludedMachines({ list }: { readonly list: AdminProviderList | undefined }) {
  return (
    <Card
      title="Quarantined and restricted"
      about="By an operator until released, or by the reputation after failed jobs. On probation, a machine gets one job at a time."
      flush
    >
      <Table
        caption="Quarantined and restricted machines"
        columns={EXCLUDED_COLUMNS}
        rows={list === undefined ? [] : excludedRows(list)}
        rowKey={({ provider_id, by }) => `${provider_id} ${by}`}
        empty={<p className="card-empty">{list === undefined ? '…' : 'None.'}</p>}
        stacked
      />
    </Card>
  );
}

function excludedRows({ held, restrained }: AdminProviderList): ExcludedRow[] {
  return [
    ...held.map(
      ({ provider_id, reason, since }): ExcludedRow => ({
        provider_id,
        by: 'Operator',
        why: reason,
        since,
        until: 'an operator releases the machine',
      }),
    ),
    ...restrained.map(({ provider_id, since, ...reputation }): ExcludedRow => {
      const why = [gateText(reputation.state), restrictionReason(reputation)].filter((text) => text !== '').join(': ');
      return { provider_id, by: 'Reputation', why, since, until: restrictionEnd(reputation) ?? 'one request succeeds' };
    }),
  ];
}

const EXCLUDED_COLUMNS: readonly Column<ExcludedRow>[] = [
  {
    key: 'machine',
    header: 'Machine',
    rowHeader: true,
    cell: ({ provider_id }) => (
      <Link href={pathWithId(PATHS.adminProvider, provider_id)}>
        <code>{shortId(provider_id)}</code>
      </Link>
    ),
  },
  { key: 'by', header: 'By', cell: ({ by }) => by },
  { key: 'why', header: 'Why', cell: ({ why }) => why },
  { key: 'since', header: 'Since', cell: ({ since }) => (since === null ? '—' : <Time at={since} />) },
  { key: 'until', header: 'Until', cell: ({ until }) => (typeof until === 'string' ? until : <Time at={until} as="date-time" />) },
];
