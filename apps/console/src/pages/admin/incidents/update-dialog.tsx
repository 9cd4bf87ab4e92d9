/** `UpdateDialog`: adds an update to an incident, which may resolve or reopen it. `EditUpdateDialog`: edits the message of an update. */
import type { AdminIncidentUpdate, AdminIncidentUpdateChange, Incident, IncidentUpdate } from '@inference/formats';
import { api } from '../../../api/api-client.js';
import { hasEnded, STATUSES } from '../../../features/incidents/incident-texts.js';
import { FormDialog } from '../../../ui/dialogs/dialog.js';
import { Select, TextAreaField } from '../../../ui/forms/field.js';
import { useFormMutation } from '../../../ui/forms/form.js';
import { incidentPath, useToastAndRefetch } from '../queries.js';

type UpdateAct = 'update' | 'resolve' | 'reopen';

/** Statuses that an update may have, in the order in which they usually occur. */
const STATUS_OPTIONS: Readonly<Record<Incident['kind'], readonly Incident['status'][]>> = {
  incident: ['investigating', 'identified', 'monitoring', 'resolved'],
  maintenance: ['scheduled', 'in_progress', 'completed'],
};
const TITLES: Readonly<Record<UpdateAct, string>> = { update: 'Add update', resolve: 'Resolve', reopen: 'Reopen' };

interface UpdateDialogProps {
  readonly incident: Incident;
  readonly act: UpdateAct;
  readonly onClose: () => void;
}

export function UpdateDialog({ incident, act, onClose }: UpdateDialogProps) {
  const { kind, title, status: now } = incident;
  const toastAndRefetch = useToastAndRefetch();
  const statuses = STATUS_OPTIONS[kind].filter((status) => act === 'update' || hasEnded({ status }) === (act === 'resolve'));
  const form = useFormMutation<AdminIncidentUpdate>(
    { status: statuses.includes(now) ? now : (statuses.at(kind === 'maintenance' ? -1 : 0) ?? now), message: '' },
    async ({ status, message }) => {
      const body: AdminIncidentUpdate = { status, message: message.trim() };
      await api.post(`${incidentPath(incident.id)}/updates`, body);
      await toastAndRefetch(
        hasEnded(body) ? `${title}: ${STATUSES[status].toLowerCase()}` : act === 'reopen' ? 'Reopened' : 'Update published',
      );
      onClose();
    },
  );
  const verb = act === 'resolve' && kind === 'maintenance' ? 'Complete' : TITLES[act];
  return (
    <FormDialog
      onClose={onClose}
      title={`${verb}: ${title}`}
      persistent
      form={form}
      errorTitle="The update was not published."
      submit={act === 'update' ? 'Publish update' : verb}
    >
      {act === 'resolve' ? null : (
        <Select label="Status" options={statuses.map((value) => ({ value, label: STATUSES[value] }))} {...form.register('status')} />
      )}
      <MessageField field={form.field('message', MESSAGE_RULES)} />
    </FormDialog>
  );
}

interface EditUpdateDialogProps {
  readonly incident: Incident;
  readonly update: IncidentUpdate;
  readonly onClose: () => void;
}

export function EditUpdateDialog({ incident, update, onClose }: EditUpdateDialogProps) {
  const toastAndRefetch = useToastAndRefetch();
  const form = useFormMutation<AdminIncidentUpdateChange>({ message: update.message }, async ({ message }) => {
    const body: AdminIncidentUpdateChange = { message: message.trim() };
    await api.patch(`${incidentPath(incident.id)}/updates/${encodeURIComponent(update.id)}`, body);
    await toastAndRefetch('Changes saved');
    onClose();
  });
  return (
    <FormDialog
      onClose={onClose}
      title="Edit update"
      description="The time of the update does not change."
      persistent
      form={form}
      errorTitle="The changes were not saved."
      submit="Save changes"
    >
      <MessageField field={form.field('message', MESSAGE_RULES)} />
    </FormDialog>
  );
}

const MESSAGE_RULES = { validate: (message: string) => message.trim() !== '' || 'Enter a message.' };

function MessageField({ field }: { readonly field: object }) {
  return <TextAreaField label="Message" hint="Plain text, public on the status page." rows={4} maxLength={2000} {...field} />;
}
