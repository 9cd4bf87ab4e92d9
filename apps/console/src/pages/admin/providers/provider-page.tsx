/** `/admin/providers/:id`: details of one machine for operators: owner, status, restrictions, actions and audit log. */
import type { AdminProviderView } from '@inference/formats';
import { Link, useParams } from 'wouter';
import { LoadedPage } from '../../../api/loaded-page.js';
import { shortId } from '../../../features/machines/machine-name.js';
import { MachineStatus, MachineStatusBadge } from '../../../features/machines/machine-status.js';
import { disconnectText, gateText, statusLabel } from '../../../features/machines/status-texts.js';
import { PATHS, pathWithId } from '../../../routing/paths.js';
import { pluralize, Time } from '../../../ui/display/figures.js';
import { Card, PageHeader } from '../../../ui/display/page.js';
import { ErrorNote } from '../../../ui/feedback/error-state.js';
import { Note } from '../../../ui/feedback/note.js';
import { EmptyState } from '../../../ui/feedback/placeholders.js';
import { LinkButton } from '../../../ui/forms/button.js';
import { useProvider } from '../queries.js';
import { AuditLog } from '../system/audit-log.js';
import { ProviderActions } from './provider-actions.js';
import { restrictionEnd, restrictionReason } from './restriction-texts.js';

export function Page() {
  const { id = '' } = useParams();
  const provider = useProvider(id);
  const notFound = (
    <EmptyState level={1} title="Machine not found" action={<LinkButton href={PATHS.adminProviders}>All machines</LinkButton>}>
      The machine is not connected, linked or quarantined. Check the address.
    </EmptyState>
  );
  return (
    <LoadedPage
      query={provider}
      subject="The machine"
      notFound={notFound}
      page={(view) => <Provider view={view} error={provider.error} />}
    />
  );
}

function Provider({ view, error }: { readonly view: AdminProviderView; readonly error: Error | null }) {
  const { provider_id, provider, status, last_seen, hold, reputation, owner } = view;
  const serial = provider?.serial_number ?? last_seen?.serial_number;
  return (
    <>
      <PageHeader
        title={serial ?? `Machine ${shortId(provider_id)}`}
        about={
          <span className="row">
            <MachineStatusBadge status={status === null ? null : statusLabel(status.status)} />
            {owner === null ? (
              <span>not linked</span>
            ) : (
              <span>
                owned by <Link href={pathWithId(PATHS.adminAccount, owner.account_id)}>{owner.email ?? owner.account_id}</Link>
              </span>
            )}
            {provider === null ? null : <span>{pluralize(provider.requests_served, 'request')} served in this session</span>}
          </span>
        }
        actions={<ProviderActions view={view} />}
      />
      <div className="stack">
        {error === null ? null : <ErrorNote error={error} title="The information below is out of date." />}
        {hold === null ? null : (
          <Note tone="bad" title="Quarantined by an operator">
            <p>“{hold.reason}”</p>
            <p>
              Since <Time at={hold.since} as="date-time" />, by <code>{hold.by}</code>. The owner sees this reason.
            </p>
          </Note>
        )}
        <RestrictionNote reputation={reputation} />
        {status === null ? (
          <Card title="Not connected">
            {last_seen === null ? (
              <p>No earlier connection is recorded.</p>
            ) : (
              <p>
                Last seen <Time at={last_seen.at} as="date-time" /> with agent {last_seen.agent.version}.{' '}
                {last_seen.left === null ? null : disconnectText(last_seen.left)}
              </p>
            )}
          </Card>
        ) : (
          <MachineStatus status={status} stepsTitle="Recommended actions for the owner" />
        )}
        <AuditLog title="Audit log" subject={provider_id} />
      </div>
    </>
  );
}

/** Note with the reason for a restriction by reputation. Renders nothing without a restriction. */
function RestrictionNote({ reputation }: { readonly reputation: AdminProviderView['reputation'] }) {
  if (reputation.state === 'well') return null;
  const reason = restrictionReason(reputation);
  const end = restrictionEnd(reputation);
  return (
    <Note tone="warn" title={gateText(reputation.state)}>
      {reason === '' ? null : <p>{reason}</p>}
      {end === null ? null : (
        <p>
          Until <Time at={end} as="date-time" />.
        </p>
      )}
    </Note>
  );
}
