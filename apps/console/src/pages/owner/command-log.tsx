/** `CommandLog`: commands that were sent to a machine from the console, newest first. */
import type { ConsoleStoredCommand } from '@inference/formats';
import type { OwnerAction } from '@inference/protocol';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { Time } from '../../ui/display/figures.js';
import { type Column, TableCard } from '../../ui/display/table.js';
import { outcomeText } from './machine-commands.js';
import { machineKey, machinePath } from './queries.js';

const PAGE_ROWS = 10;

const COLUMNS: readonly Column<ConsoleStoredCommand>[] = [
  {
    key: 'what',
    header: 'Command',
    rowHeader: true,
    cell: ({ action }) => <span className="breakable">{action === null ? 'Unknown command' : <ActionText action={action} />}</span>,
  },
  { key: 'outcome', header: 'Result', cell: ({ outcome, refusal }) => outcomeText(outcome, refusal) },
  {
    key: 'who',
    header: 'Who',
    cell: ({ actor }) => (actor === null ? 'Deleted account' : <span title={actor.email}>{actor.name}</span>),
  },
  { key: 'when', header: 'When', cell: ({ at }) => <Time at={at} /> },
];

export function CommandLog({ providerId }: { readonly providerId: string }) {
  const list = usePaginatedQuery<ConsoleStoredCommand>([...machineKey(providerId), 'commands'], `${machinePath(providerId)}/commands`, {
    limit: PAGE_ROWS,
  });
  return (
    <TableCard
      title="Commands from the console"
      about="The last 1,000 commands to the machines of this account are retained."
      subject="The commands"
      list={list}
      caption="Commands that were sent to this machine"
      columns={COLUMNS}
      rowKey={({ id }) => id}
      empty={<p className="card-empty">No commands yet.</p>}
      stacked
      loadingRows={2}
    />
  );
}

function ActionText({ action }: { readonly action: OwnerAction }) {
  switch (action.kind) {
    case 'pause':
      if (action.until === null) return 'Pause';
      return (
        <>
          Pause until <Time at={new Date(action.until).toISOString()} as="date-time" />
        </>
      );
    case 'resume':
      return 'Resume';
    case 'set_schedule':
      return `Schedule: ${action.schedule === '' ? 'always' : action.schedule}`;
    case 'set_model':
      return `${action.served ? 'Serve' : 'Stop serving'} ${action.model}`;
    default:
      return action satisfies never;
  }
}
