/** `/machines`: machines linked to this account, or instructions to link a machine. */
import type { ConsoleMachine } from '@inference/formats';
import { Link2 } from 'lucide-react';
import { Link } from 'wouter';
import { usePermission } from '../../api/session.js';
import { lastDays } from '../../features/account/utc-days.js';
import { machineName } from '../../features/machines/machine-name.js';
import { MachineStatusBadge } from '../../features/machines/machine-status.js';
import { statusLabel } from '../../features/machines/status-texts.js';
import { PATHS, PROVIDER_GUIDE, pathWithId } from '../../routing/paths.js';
import { Count, formatRate, Money, Time } from '../../ui/display/figures.js';
import { Card, PageHeader, Stat, Stats } from '../../ui/display/page.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { LinkButton } from '../../ui/forms/button.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { sumOf } from './earnings.js';
import { useEarnings, useMachines } from './queries.js';

const COLUMNS: readonly Column<ConsoleMachine>[] = [
  {
    key: 'name',
    header: 'Machine',
    rowHeader: true,
    cell: (machine) => <Link href={pathWithId(PATHS.machine, machine.provider_id)}>{nameOf(machine)}</Link>,
  },
  {
    key: 'state',
    header: 'State',
    cell: ({ live }) => <MachineStatusBadge status={live === null ? null : statusLabel(live.status)} />,
  },
  {
    key: 'models',
    header: 'Models',
    cell: ({ live, last_seen }) => (live ?? last_seen)?.models.join(', ') || '—',
  },
  {
    key: 'jobs',
    header: 'Requests now',
    numeric: true,
    cell: ({ live }) => (live === null ? '—' : `${live.running_jobs} of ${live.slots}`),
  },
  {
    key: 'rate',
    header: 'Tokens/s',
    numeric: true,
    cell: ({ live, last_seen }) => formatRateOrNot((live ?? last_seen)?.decode_tps ?? null),
  },
  {
    key: 'served',
    header: 'Served',
    numeric: true,
    cell: ({ live, last_seen }) => <Count short value={(live ?? last_seen)?.requests_served ?? 0} />,
  },
  {
    key: 'seen',
    header: 'Connected',
    cell: ({ live, last_seen }) => {
      if (live === null && last_seen === null) return 'not yet';
      return (
        <span>
          {live === null ? 'until ' : null}
          <Time at={live?.connected_at ?? last_seen?.at ?? 0} />
        </span>
      );
    },
  },
];

export function Page() {
  const machines = useMachines();
  const canWrite = usePermission('machines.write');
  const today = useEarnings(lastDays(1, Date.now()));
  const month = useEarnings(lastDays(30, Date.now()));
  const rows = machines.data?.data;
  const isEmpty = rows?.length === 0;
  return (
    <>
      <PageHeader
        title="Machines"
        about="Macs linked to your account, with their current state."
        actions={
          isEmpty || !canWrite ? undefined : (
            <LinkButton href={PATHS.link} icon={<Link2 size={16} aria-hidden="true" />}>
              Link a machine
            </LinkButton>
          )
        }
      />
      <div className="stack">
        <Loaded query={machines} subject="Your machines" staleTitle="These states are out of date.">
          {isEmpty ? (
            <Card title="No machines linked" about="Earn with a Mac in three steps.">
              <HowToLink />
            </Card>
          ) : (
            <>
              <Stats>
                <Stat label="Machines" value={rows?.length} />
                <Stat label="Ready for requests" value={rows?.filter(({ live }) => live?.status === 'online').length} />
                <Stat label="Earned today" value={money(today.data?.data)} hint="UTC" />
                <Stat label="Earned in 30 days" value={money(month.data?.data)} />
              </Stats>
              <Card flush>
                <Table
                  caption="Your machines"
                  columns={COLUMNS}
                  rows={rows}
                  rowKey={({ provider_id }) => provider_id}
                  empty={null}
                  stacked
                />
              </Card>
            </>
          )}
        </Loaded>
      </div>
    </>
  );
}

function nameOf(machine: ConsoleMachine): string {
  const { provider_id, name, live, last_seen } = machine;
  return machineName({ provider_id, name, chip_name: (live ?? last_seen)?.chip_name ?? null });
}

function money(rows: Parameters<typeof sumOf>[0] | undefined) {
  return rows === undefined ? undefined : <Money microUsd={sumOf(rows).earned} />;
}

function formatRateOrNot(rate: number | null): string {
  return rate === null || rate === 0 ? '—' : formatRate(rate);
}

function HowToLink() {
  return (
    <ol className="steps">
      <li>
        <h3>Install the agent on the Mac</h3>
        <p>
          You need a Mac with Apple silicon and 16 GB of memory or more. The <Link href={PROVIDER_GUIDE}>provider guide</Link> has the ways
          to install.
        </p>
      </li>
      <li>
        <h3>Set it up</h3>
        <CopyField label="Command" hideLabel value={`inference-provider setup --coordinator ${window.location.origin}`} />
        <p>
          Setup shows a code of eight letters for step 3, then asks for model and times, and starts the agent. If the agent already serves,
          run <code>inference-provider login</code> instead.
        </p>
      </li>
      <li>
        <h3>Approve the code here</h3>
        <p>
          The machine then appears in this list, and its earnings are yours. This page then shows whether it gets requests, and why not.
        </p>
        <LinkButton href={PATHS.link}>Enter a code</LinkButton>
      </li>
    </ol>
  );
}
