/** `LogCard`: log of the members' actions in the organisation, newest first, with a download. */
import type { ConsoleOrganisationEvent, OrganisationAction } from '@inference/formats';
import { accountUrl } from '../../api/active-account.js';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { ROLE_LABELS } from '../../features/account/roles.js';
import { Time } from '../../ui/display/figures.js';
import { type Column, TableCard } from '../../ui/display/table.js';
import { DownloadLink } from '../../ui/forms/download-link.js';
import { ORGANISATION_KEY, ORGANISATION_PATH } from './queries.js';

const PAGE_ROWS = 20;

const ACTION_LABELS: Readonly<Record<OrganisationAction, string>> = {
  'organisation.created': 'Created the organisation',
  'organisation.renamed': 'Renamed the organisation',
  'member.joined': 'Joined',
  'member.role_changed': 'Changed the role',
  'member.removed': 'Removed a member',
  'member.left': 'Left',
  'invitation.sent': 'Sent an invitation',
  'invitation.resent': 'Resent an invitation',
  'invitation.revoked': 'Revoked an invitation',
  'key.created': 'Created an API key',
  'key.changed': 'Changed an API key',
  'key.revoked': 'Revoked an API key',
  'deposit.started': 'Started a deposit',
  'billing_details.changed': 'Changed the billing details',
  'alert.changed': 'Changed the low-balance alert',
  'withdrawal.requested': 'Requested a withdrawal',
  'payout_account.opened': 'Set up payouts',
  'machine.linked': 'Linked a machine',
  'machine.link_denied': 'Denied a machine',
  'machine.renamed': 'Renamed a machine',
  'machine.unlinked': 'Unlinked a machine',
  'machine.controlled': 'Changed settings of a machine',
};

const COLUMNS: readonly Column<ConsoleOrganisationEvent>[] = [
  {
    key: 'who',
    header: 'Who',
    rowHeader: true,
    cell: ({ actor }) => (actor === null ? 'Deleted account' : <span title={actor.email}>{actor.name}</span>),
  },
  { key: 'what', header: 'What', cell: ({ action }) => ACTION_LABELS[action] },
  {
    key: 'subject',
    header: 'Details',
    cell: ({ subject, role }) => (
      <span className="breakable">
        {[subject, role === null ? null : ROLE_LABELS[role]].filter((text) => text !== null).join(' · ') || '—'}
      </span>
    ),
  },
  { key: 'when', header: 'When', cell: ({ at }) => <Time at={at} /> },
];

export function LogCard() {
  const list = usePaginatedQuery<ConsoleOrganisationEvent>([...ORGANISATION_KEY, 'log'], `${ORGANISATION_PATH}/log`, { limit: PAGE_ROWS });
  return (
    <TableCard
      title="Log"
      about="What members did. The last 1,000 actions are retained."
      actions={
        <DownloadLink href={accountUrl(`${ORGANISATION_PATH}/log/export?format=csv`)} fileName="organisation-log.csv" size="small">
          Download CSV
        </DownloadLink>
      }
      subject="The log"
      list={list}
      caption="Log of the organisation"
      columns={COLUMNS}
      rowKey={({ id }) => id}
      empty={<p className="card-empty">Nothing yet.</p>}
      stacked
      loadingRows={3}
    />
  );
}
