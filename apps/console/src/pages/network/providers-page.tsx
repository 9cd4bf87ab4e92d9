/** `/providers`: connected providers with search and filters, stored in the URL. */
import './network.css';
import type { ProviderSnapshot } from '@inference/formats';
import { Link } from 'wouter';
import { TRUST_LEVELS } from '../../features/trust/labels.js';
import { Legend } from '../../features/trust/legend.js';
import { MachineVerdictBadge } from '../../features/trust/verdict-badge.js';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { Count, formatCount, formatRate } from '../../ui/display/figures.js';
import { Card, PageHeader } from '../../ui/display/page.js';
import { type Column, Pager, Table, usePages } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { LinkButton } from '../../ui/forms/button.js';
import { Field, Select } from '../../ui/forms/field.js';
import { useUrlText } from '../../ui/navigation/url-state.js';
import { filterOptions, filterProviders } from './provider-filter.js';
import { useStats } from './queries.js';
import { StatusBadge, shortId } from './status-badges.js';

const PAGE_SIZE = 50;

const COLUMNS: readonly Column<ProviderSnapshot>[] = [
  {
    key: 'id',
    header: 'Provider',
    rowHeader: true,
    cell: ({ id }) => (
      <Link href={pathWithId(PATHS.provider, id)} className="provider-id" title={id}>
        <span className="visually-hidden">Provider </span>
        {shortId(id)}
      </Link>
    ),
  },
  { key: 'chip', header: 'Machine', cell: ({ chip, memory_gb }) => `${chip}, ${formatCount(memory_gb)} GB` },
  { key: 'status', header: 'State', cell: ({ status }) => <StatusBadge status={status} /> },
  { key: 'trust', header: 'Trust', cell: ({ trust_level }) => <MachineVerdictBadge trustLevel={trust_level} /> },
  {
    key: 'models',
    header: 'Models',
    cell: ({ models }) => (models.length === 0 ? 'none' : models.length === 1 ? models[0] : `${models[0]} and ${models.length - 1} more`),
  },
  { key: 'rate', header: 'Tokens/s', numeric: true, cell: ({ decode_tps }) => (decode_tps === 0 ? '–' : formatRate(decode_tps)) },
  { key: 'served', header: 'Requests', numeric: true, cell: ({ requests_served }) => <Count value={requests_served} /> },
];

export function Page() {
  const stats = useStats();
  const [search, setSearch] = useUrlText('search');
  const [chip, setChip] = useUrlText('chip');
  const [status, setStatus] = useUrlText('state');
  const [trust, setTrust] = useUrlText('trust');
  const all = stats.data?.providers;
  const rows = all && filterProviders(all, { search, chip, status, trust });
  const pages = usePages(rows, PAGE_SIZE);
  const options = filterOptions(all ?? []);
  return (
    <>
      <PageHeader
        title="Providers"
        about="Connected Macs. Open one to see its attestation and verify it in your browser."
        actions={
          <LinkButton href={PATHS.verify} kind="secondary">
            Verify a saved record
          </LinkButton>
        }
      />
      <search>
        <form className="provider-filters" onSubmit={(event) => event.preventDefault()}>
          <Field
            label="Search"
            type="search"
            placeholder="ID, chip or model"
            autoComplete="off"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
          <Select label="Chip" value={chip} onValue={setChip} options={[{ value: '', label: 'All chips' }, ...options.chips]} />
          <Select label="State" value={status} onValue={setStatus} options={[{ value: '', label: 'All states' }, ...options.statuses]} />
          <Select
            label="Trust"
            value={trust}
            onValue={setTrust}
            options={[
              { value: '', label: 'All levels' },
              { value: 'hardware', label: TRUST_LEVELS.hardware.label },
              { value: 'self_signed', label: TRUST_LEVELS.self_signed.label },
            ]}
          />
        </form>
      </search>
      <Card flush>
        <Loaded query={stats} subject="The list">
          <Table
            caption="Providers"
            columns={COLUMNS}
            rows={pages.rows}
            rowKey={({ id }) => id}
            stacked
            empty={
              all?.length === 0 ? (
                <EmptyState title="No provider is connected">Macs appear here when they connect.</EmptyState>
              ) : (
                <EmptyState title="No providers match">Change the search or the filters above.</EmptyState>
              )
            }
          />
          {pages.total > 0 ? <Pager {...pages} size={PAGE_SIZE} items="providers" /> : null}
        </Loaded>
      </Card>
      <Legend topics={['verdicts', 'levels']} />
    </>
  );
}
