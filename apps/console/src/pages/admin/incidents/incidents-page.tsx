/** `/admin/incidents`: operators publish, update and end the incidents and maintenance of the public status page. */
import type { Incident, IncidentUpdate } from '@inference/formats';
import { CalendarClock, Plus } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { api } from '../../../api/api-client.js';
import { hasEnded, IMPACTS } from '../../../features/incidents/incident-texts.js';
import { IncidentUpdates, IncidentView } from '../../../features/incidents/incident-view.js';
import { PATHS } from '../../../routing/paths.js';
import { ConfirmDialog, Dialog } from '../../../ui/dialogs/dialog.js';
import { Time } from '../../../ui/display/figures.js';
import { Badge, Card, PageHeader } from '../../../ui/display/page.js';
import { type Column, TableCard } from '../../../ui/display/table.js';
import { Loaded } from '../../../ui/feedback/error-state.js';
import { Skeleton } from '../../../ui/feedback/placeholders.js';
import { Button } from '../../../ui/forms/button.js';
import { incidentPath, useIncidents, useToastAndRefetch } from '../queries.js';
import { IncidentDialog } from './incident-dialog.js';
import { EditUpdateDialog, UpdateDialog } from './update-dialog.js';

type Open =
  | { readonly what: 'new'; readonly kind: Incident['kind'] }
  | { readonly what: 'edit' | 'delete' | 'update' | 'resolve' | 'reopen' | 'updates'; readonly incident: Incident }
  | { readonly what: 'edit-update'; readonly incident: Incident; readonly update: IncidentUpdate };

export function Page() {
  const incidents = useIncidents();
  const [open, setOpen] = useState<Open | null>(null);
  const all = incidents.data;
  const current = all?.filter((incident) => !hasEnded(incident)) ?? [];
  const card = (incident: Incident): ReactNode => (
    <IncidentView
      key={incident.id}
      incident={incident}
      actions={<CurrentActions incident={incident} onOpen={setOpen} />}
      updateAction={(update) => <EditUpdate incident={incident} update={update} onOpen={setOpen} />}
    />
  );
  const actions: Column<Incident> = {
    key: 'actions',
    header: 'Actions',
    cell: (incident) => <PastActions incident={incident} onOpen={setOpen} />,
  };
  return (
    <>
      <PageHeader
        title="Incidents"
        about={
          <>
            Incidents and maintenance on the <Link href={PATHS.status}>status page</Link>. Changes are public within 30 seconds.
          </>
        }
        actions={
          <>
            <Button icon={<CalendarClock size={16} aria-hidden="true" />} onClick={() => setOpen({ what: 'new', kind: 'maintenance' })}>
              Schedule maintenance
            </Button>
            <Button kind="primary" icon={<Plus size={16} aria-hidden="true" />} onClick={() => setOpen({ what: 'new', kind: 'incident' })}>
              Report incident
            </Button>
          </>
        }
      />
      <Loaded query={incidents} subject="The incidents">
        {all === undefined ? (
          <Skeleton height="20rem" />
        ) : (
          <div className="stack">
            {current.filter(({ status }) => status !== 'scheduled').map(card)}
            {current.filter(({ status }) => status === 'scheduled').map(card)}
            {current.length === 0 ? (
              <Card>
                <p>No open incidents and no scheduled maintenance.</p>
              </Card>
            ) : null}
            <TableCard
              title="Past incidents"
              subject="The incidents"
              list={{ ...incidents, data: all.filter(hasEnded) }}
              caption="Past incidents and maintenance"
              columns={[...COLUMNS, actions]}
              rowKey={({ id }) => id}
              empty={<p className="card-empty">No past incidents.</p>}
              stacked
            />
          </div>
        )}
      </Loaded>
      {open === null ? null : <OpenDialog open={open} onOpen={setOpen} onClose={() => setOpen(null)} />}
    </>
  );
}

interface EditUpdateProps extends ActionsProps {
  readonly update: IncidentUpdate;
}

function EditUpdate({ incident, update, onOpen }: EditUpdateProps) {
  return (
    <Button size="small" kind="quiet" onClick={() => onOpen({ what: 'edit-update', incident, update })}>
      Edit update
    </Button>
  );
}

interface ActionsProps {
  readonly incident: Incident;
  readonly onOpen: (open: Open) => void;
}

function CurrentActions({ incident, onOpen }: ActionsProps) {
  return (
    <>
      <Button size="small" kind="primary" onClick={() => onOpen({ what: 'update', incident })}>
        Add update
      </Button>
      <Button size="small" onClick={() => onOpen({ what: 'resolve', incident })}>
        {incident.kind === 'maintenance' ? 'Complete' : 'Resolve'}
      </Button>
      <Button size="small" onClick={() => onOpen({ what: 'edit', incident })}>
        Edit
      </Button>
      <Button size="small" kind="quiet" onClick={() => onOpen({ what: 'delete', incident })}>
        Delete
      </Button>
    </>
  );
}

function PastActions({ incident, onOpen }: ActionsProps) {
  const { title, ends_at } = incident;
  // Maintenance cannot be reopened after its scheduled end.
  const canReopen = ends_at === null || Date.parse(ends_at) > Date.now();
  return (
    <span className="cell-actions">
      {canReopen ? (
        <Button size="small" aria-label={`Reopen ${title}`} onClick={() => onOpen({ what: 'reopen', incident })}>
          Reopen
        </Button>
      ) : null}
      <Button size="small" aria-label={`Updates of ${title}`} onClick={() => onOpen({ what: 'updates', incident })}>
        Updates
      </Button>
      <Button size="small" aria-label={`Edit ${title}`} onClick={() => onOpen({ what: 'edit', incident })}>
        Edit
      </Button>
      <Button size="small" kind="quiet" aria-label={`Delete ${title}`} onClick={() => onOpen({ what: 'delete', incident })}>
        Delete
      </Button>
    </span>
  );
}

interface OpenDialogProps {
  readonly open: Open;
  readonly onOpen: (open: Open) => void;
  readonly onClose: () => void;
}

function OpenDialog({ open, onOpen, onClose }: OpenDialogProps) {
  const toastAndRefetch = useToastAndRefetch();
  switch (open.what) {
    case 'new':
      return <IncidentDialog kind={open.kind} incident={null} onClose={onClose} />;
    case 'edit':
      return <IncidentDialog kind={open.incident.kind} incident={open.incident} onClose={onClose} />;
    case 'edit-update':
      return <EditUpdateDialog incident={open.incident} update={open.update} onClose={onClose} />;
    case 'updates':
      return (
        <Dialog title={`Updates of “${open.incident.title}”`} wide onClose={onClose}>
          <IncidentUpdates
            incident={open.incident}
            action={(update) => <EditUpdate incident={open.incident} update={update} onOpen={onOpen} />}
          />
        </Dialog>
      );
    case 'delete':
      return (
        <ConfirmDialog
          onClose={onClose}
          title={`Delete “${open.incident.title}”?`}
          confirm="Delete"
          errorTitle="The incident was not deleted."
          onConfirm={async () => {
            await api.delete(incidentPath(open.incident.id));
            await toastAndRefetch('Deleted');
          }}
        >
          <p>The incident and all updates disappear from the status page and the feed. To end an incident, use “Resolve” instead.</p>
        </ConfirmDialog>
      );
    default:
      return <UpdateDialog incident={open.incident} act={open.what} onClose={onClose} />;
  }
}

const COLUMNS: readonly Column<Incident>[] = [
  { key: 'title', header: 'Title', rowHeader: true, cell: ({ title }) => <span className="breakable">{title}</span> },
  {
    key: 'kind',
    header: 'Impact',
    cell: ({ kind, impact }) => (
      <Badge tone={kind === 'maintenance' ? 'accent' : IMPACTS[impact].tone}>
        {kind === 'maintenance' ? 'Maintenance' : IMPACTS[impact].label}
      </Badge>
    ),
  },
  { key: 'started', header: 'Started', cell: ({ created_at, starts_at }) => <Time at={starts_at ?? created_at} as="date-time" /> },
  { key: 'ended', header: 'Ended', cell: ({ resolved_at }) => (resolved_at === null ? '—' : <Time at={resolved_at} as="date-time" />) },
];
