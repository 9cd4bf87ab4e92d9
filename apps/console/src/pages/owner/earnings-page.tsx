/** `/earnings`: earnings per day and machine, and withdrawals. */
import type { ConsoleEarningDays } from '@inference/formats';
import { Download } from 'lucide-react';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import { usePermission } from '../../api/session.js';
import { useBalance } from '../../features/account/balance.js';
import { eachDay, lastDays, longDay, shortDay } from '../../features/account/utc-days.js';
import { machineName, shortId } from '../../features/machines/machine-name.js';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { Chart } from '../../ui/chart/chart.js';
import { OTHERS_COLOUR, seriesColours } from '../../ui/chart/series-colours.js';
import { Count, formatUsd, Money } from '../../ui/display/figures.js';
import { Card, PageHeader, Stat, Stats } from '../../ui/display/page.js';
import { type Column, Table } from '../../ui/display/table.js';
import { downloadText } from '../../ui/download.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { EmptyState, Skeleton } from '../../ui/feedback/placeholders.js';
import { Button, LinkButton } from '../../ui/forms/button.js';
import { Segmented } from '../../ui/forms/field.js';
import { type EarningDay, earningsCsv, forecastOf, OTHERS, seriesOf, sumOf } from './earnings.js';
import { useEarnings, useMachines } from './queries.js';
import { Withdraw, WithdrawalHistory } from './withdrawals.js';

const RANGES = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
] as const;
type Range = (typeof RANGES)[number]['value'];

/** Maximum number of series in the chart. Of more machines, the smallest share the last series. */
const MAX_SERIES = 6;

export function Page() {
  const [range, setRange] = useState<Range>('30');
  const days = lastDays(Number(range), Date.now());
  const earnings = useEarnings(days);
  const balance = useBalance();
  const canWithdraw = usePermission('payouts.write');
  const names = useNames();
  const rows = earnings.data?.data;
  const sums = rows === undefined ? undefined : sumOf(rows);
  return (
    <>
      <PageHeader
        title="Earnings"
        about="Earnings of your machines for signed, delivered and paid responses. Days are in UTC."
        actions={<Segmented label="Range" value={range} options={RANGES} onValue={setRange} />}
      />
      <div className="stack">
        <Stats>
          <Stat label={`Earned in ${range} days`} value={sums === undefined ? undefined : <Money microUsd={sums.earned} />} />
          <Stat
            label="Next 30 days"
            value={earnings.data === undefined ? undefined : <Forecast earnings={earnings.data} />}
            hint="Estimate: the mean of the complete days"
          />
          <Stat label="Requests" value={sums === undefined ? undefined : <Count short value={sums.jobs} />} />
          <Stat label="Tokens" value={sums === undefined ? undefined : <Count short value={sums.tokens} />} />
          <Stat
            label="Available to withdraw"
            value={balance.data === undefined ? undefined : <Money microUsd={balance.data.withdrawable_micro_usd} />}
          />
          {balance.data === undefined || balance.data.pending_micro_usd === 0 ? null : (
            <Stat label="Pending" value={<Money microUsd={balance.data.pending_micro_usd} />} />
          )}
        </Stats>
        <Loaded query={earnings} subject="Your earnings" staleTitle="These figures are out of date.">
          <ByDay earnings={earnings.data} nameOf={names} />
        </Loaded>
        <div className="columns">
          {canWithdraw ? <Withdraw balance={balance.data} /> : null}
          <WithdrawalHistory />
        </div>
        <DayTable earnings={earnings.data} nameOf={names} />
      </div>
    </>
  );
}

function Forecast({ earnings: { data, to } }: { readonly earnings: ConsoleEarningDays }) {
  const forecast = forecastOf(data, { to });
  return forecast === null ? <span className="muted">No complete day yet</span> : <Money microUsd={forecast} />;
}

/** Display names of machines that are currently linked. */
function useNames(): (providerId: string) => string {
  const machines = useMachines().data;
  return useMemo(() => {
    const names = new Map(
      machines?.data.map(({ provider_id, name, live, last_seen }) => [
        provider_id,
        machineName({ provider_id, name, chip_name: (live ?? last_seen)?.chip_name ?? null }),
      ]),
    );
    const count = new Map<string, number>();
    for (const name of names.values()) count.set(name, (count.get(name) ?? 0) + 1);
    return (providerId) => {
      const name = names.get(providerId) ?? `Machine ${shortId(providerId)}`;
      // Machines with equal names get their short id appended.
      return (count.get(name) ?? 0) > 1 ? `${name} (${shortId(providerId)})` : name;
    };
  }, [machines]);
}

interface ByDayProps {
  readonly earnings: ConsoleEarningDays | undefined;
  readonly nameOf: (providerId: string) => string;
}

/** The card has the same height while loading, empty and with a chart, so that content below does not shift. */
function ByDay({ earnings, nameOf }: ByDayProps) {
  const save = ({ from, to, data }: ConsoleEarningDays): void =>
    downloadText(`earnings-${from}-${to}.csv`, earningsCsv(data, nameOf), 'text/csv');
  return (
    <Card
      title="Per day and machine"
      actions={
        <Button
          size="small"
          icon={<Download size={16} aria-hidden="true" />}
          disabled={earnings === undefined || earnings.data.length === 0}
          onClick={() => (earnings === undefined ? undefined : save(earnings))}
        >
          CSV
        </Button>
      }
    >
      <div className="chart-place">
        {earnings === undefined ? (
          <Skeleton height="17rem" />
        ) : earnings.data.length === 0 ? (
          <EmptyState title="No earnings in this period" action={<LinkButton href={PATHS.machines}>View machines</LinkButton>}>
            A machine earns with every paid response. Its page explains why it gets few requests.
          </EmptyState>
        ) : (
          <EarningsChart earnings={earnings} nameOf={nameOf} />
        )}
      </div>
    </Card>
  );
}

function EarningsChart({ earnings: { from, to, data }, nameOf }: { readonly earnings: ConsoleEarningDays } & Pick<ByDayProps, 'nameOf'>) {
  const shown = seriesOf(data, { from, to }, MAX_SERIES);
  const own = shown.map(({ id }) => id).filter((id) => id !== OTHERS);
  const colours = seriesColours(own, own);
  const series = shown.map(({ id, values }) => ({
    label: id === OTHERS ? 'Other machines' : nameOf(id),
    values,
    colour: colours.get(id) ?? OTHERS_COLOUR,
  }));
  return (
    <Chart
      title={`What each machine earned per day, from ${longDay(from)} to ${longDay(to)}`}
      kind="bar"
      stacked
      labels={eachDay({ from, to }).map(shortDay)}
      series={series}
      format={formatUsd}
      labelHeading="Day"
    />
  );
}

function DayTable({ earnings, nameOf }: ByDayProps) {
  if (earnings === undefined || earnings.data.length === 0) return null;
  const columns: readonly Column<EarningDay>[] = [
    { key: 'day', header: 'Day', cell: ({ day }) => longDay(day) },
    {
      key: 'machine',
      header: 'Machine',
      rowHeader: true,
      cell: ({ provider_id }) => <Link href={pathWithId(PATHS.machine, provider_id)}>{nameOf(provider_id)}</Link>,
    },
    { key: 'jobs', header: 'Requests', numeric: true, cell: ({ jobs }) => <Count value={jobs} /> },
    { key: 'tokens', header: 'Tokens', numeric: true, cell: ({ tokens }) => <Count value={tokens} /> },
    { key: 'earned', header: 'Earned', numeric: true, cell: ({ earned_micro_usd }) => <Money microUsd={earned_micro_usd} /> },
  ];
  return (
    <Card title="Each day" flush>
      <Table
        caption="Earnings per day and machine"
        columns={columns}
        rows={[...earnings.data].reverse()}
        rowKey={({ day, provider_id }) => `${day} ${provider_id}`}
        empty={null}
        stacked
      />
    </Card>
  );
}
