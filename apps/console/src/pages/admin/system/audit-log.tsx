/** `AuditLog`: table of operator actions, newest first, about one subject or all. */
import type { AdminAction } from '@inference/formats';
import { Link } from 'wouter';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { Time } from '../../../ui/display/figures.js';
import { type Column, TableCard } from '../../../ui/display/table.js';
import { useActions } from '../queries.js';
import { actionText, outcomeText } from './action-texts.js';

interface AuditLogProps {
  /** Id of an account, machine or other object of actions. Null: actions on all objects. */
  readonly subject: string | null;
  readonly title?: string;
}

export function AuditLog({ subject, title }: AuditLogProps) {
  const actions = useActions(subject);
  return (
    <TableCard
      title={title}
      subject="Audit log"
      list={actions}
      caption={title === undefined ? 'Audit log' : `${title}: the list`}
      columns={subject === null ? COLUMNS : COLUMNS.filter(({ key }) => key !== 'subject')}
      rowKey={({ id }) => id}
      empty={<p className="card-empty">No actions yet.</p>}
      stacked
    />
  );
}

const COLUMNS: readonly Column<AdminAction>[] = [
  { key: 'at', header: 'When', cell: ({ at }) => <Time at={at} as="date-time" /> },
  { key: 'operator', header: 'Operator', cell: ({ operator, operator_name }) => operator_name ?? operator },
  { key: 'action', header: 'Action', rowHeader: true, cell: actionText },
  { key: 'subject', header: 'Subject', cell: (action) => <Subject action={action} /> },
  { key: 'outcome', header: 'Result', cell: ({ outcome }) => outcomeText(outcome) },
];

/** Route pattern of the page about the subject of an action. Null: there is no such page. */
function pageOf(action: string): Parameters<typeof pathWithId>[0] | null {
  if (action.includes('/providers/')) return PATHS.adminProvider;
  return action.includes('/accounts/') ? PATHS.adminAccount : null;
}

function Subject({ action: { action, subject } }: { readonly action: AdminAction }) {
  if (subject === null) return '—';
  const path = pageOf(action);
  const text = <code>{subject}</code>;
  return path === null ? text : <Link href={pathWithId(path, subject)}>{text}</Link>;
}
