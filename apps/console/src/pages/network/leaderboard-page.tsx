/** `/leaderboard`: owners ranked by earnings, tokens or requests, under pseudonyms. Metric and window are part of the URL. */
import './network.css';
import type { Leaderboard, LeaderboardMetric, StatisticsWindow } from '@inference/formats';
import { Count, Money, Time } from '../../ui/display/figures.js';
import { Card, PageHeader } from '../../ui/display/page.js';
import { type Column, Pager, Table, usePages } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { Segmented } from '../../ui/forms/field.js';
import { useUrlChoice } from '../../ui/navigation/url-state.js';
import { LEADERBOARD_ENTRIES, useLeaderboard } from './queries.js';

const METRICS = [
  { value: 'earnings', label: 'Earnings' },
  { value: 'tokens', label: 'Tokens' },
  { value: 'jobs', label: 'Requests' },
] as const satisfies readonly { value: LeaderboardMetric; label: string }[];

const WINDOWS = [
  { value: 'all', label: 'All time' },
  { value: '24h', label: '24 hours' },
  { value: '7d', label: '7 days' },
  { value: '30d', label: '30 days' },
] as const satisfies readonly { value: StatisticsWindow; label: string }[];

type Entry = Leaderboard['entries'][number];

const COLUMNS: readonly Column<Entry>[] = [
  { key: 'rank', header: 'Rank', numeric: true, cell: ({ rank }) => <Count value={rank} /> },
  { key: 'owner', header: 'Owner', rowHeader: true, cell: ({ pseudonym }) => pseudonym },
  { key: 'earnings', header: 'Earnings', numeric: true, cell: (entry) => <Money microUsd={entry.earnings_micro_usd} rounded /> },
  { key: 'tokens', header: 'Tokens', numeric: true, cell: ({ tokens }) => <Count value={tokens} /> },
  { key: 'jobs', header: 'Requests', numeric: true, cell: ({ jobs }) => <Count value={jobs} /> },
];

const PAGE_SIZE = 50;

export function Page() {
  const [metric, setMetric] = useUrlChoice('metric', ['earnings', 'tokens', 'jobs']);
  const [window, setWindow] = useUrlChoice('window', ['all', '24h', '7d', '30d']);
  const board = useLeaderboard(metric, window);
  const pages = usePages(board.data?.entries, PAGE_SIZE);
  return (
    <>
      <PageHeader
        title="Leaderboard"
        about={`The top ${LEADERBOARD_ENTRIES} Mac owners by paid work. Names are pseudonyms that cannot be traced to accounts.`}
      />
      <div className="stack">
        <div className="row">
          <Segmented label="Rank by" value={metric} onValue={setMetric} options={METRICS} />
          <Segmented label="Time" value={window} onValue={setWindow} options={WINDOWS} />
        </div>
        <Card flush>
          <Loaded query={board} subject="The leaderboard">
            <Table
              caption="Leaderboard"
              columns={COLUMNS}
              rows={pages.rows}
              rowKey={({ rank }) => String(rank)}
              loadingRows={8}
              stacked
              empty={
                <EmptyState title="No earnings in this period">
                  Entries appear with the first paid request. Choose a longer period, or link a Mac.
                </EmptyState>
              }
            />
            {pages.total > 0 ? <Pager {...pages} size={PAGE_SIZE} items="owners" /> : null}
          </Loaded>
        </Card>
        <p className="muted small board-time">
          {board.data === undefined ? (
            ' '
          ) : (
            <>
              Computed <Time at={board.data.updated_at} />. It is renewed every five minutes.
            </>
          )}
        </p>
      </div>
    </>
  );
}
