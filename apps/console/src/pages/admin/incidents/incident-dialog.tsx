/** `IncidentDialog`: publishes or edits an incident or maintenance on the status page. */
import type { AdminIncidentChange, AdminIncidentCreate, Incident } from '@inference/formats';
import { api } from '../../../api/api-client.js';
import { COMPONENTS, IMPACTS, STATUSES } from '../../../features/incidents/incident-texts.js';
import { FormDialog } from '../../../ui/dialogs/dialog.js';
import { CheckField, Field, Select, TextAreaField } from '../../../ui/forms/field.js';
import { useFormMutation } from '../../../ui/forms/form.js';
import { incidentPath, useToastAndRefetch } from '../queries.js';
import { fromLocalInput, toLocalInput, utcHint } from './local-times.js';

const MAX_MODELS = 20;
const IMPACT_OPTIONS = entriesOf(IMPACTS).map(([value, { label }]) => ({ value, label }));
const FIRST_STATUSES = (['investigating', 'identified', 'monitoring'] as const).map((value) => ({ value, label: STATUSES[value] }));

interface IncidentDialogProps {
  readonly kind: Incident['kind'];
  /** Incident to edit; null: publish a new incident. */
  readonly incident: Incident | null;
  readonly onClose: () => void;
}

interface Fields {
  readonly title: string;
  readonly impact: Incident['impact'];
  readonly components: Incident['components'];
  readonly models: string;
  readonly status: (typeof FIRST_STATUSES)[number]['value'];
  readonly message: string;
  readonly starts: string;
  readonly ends: string;
}

export function IncidentDialog({ kind, incident, onClose }: IncidentDialogProps) {
  const isMaintenance = kind === 'maintenance';
  const toastAndRefetch = useToastAndRefetch();
  const form = useFormMutation<Fields>(
    {
      title: incident?.title ?? '',
      impact: incident?.impact ?? (isMaintenance ? 'none' : 'minor'),
      components: incident?.components ?? [],
      models: incident?.models.join('\n') ?? '',
      status: 'investigating',
      message: '',
      starts: inputOf(incident?.starts_at),
      ends: inputOf(incident?.ends_at),
    },
    async ({ title, impact, components, models, status, message, starts, ends }) => {
      const subject = { title: title.trim(), impact, components, models: modelsOf(models) };
      const times = isMaintenance
        ? { starts_at: fromLocalInput(starts, incident?.starts_at), ends_at: fromLocalInput(ends, incident?.ends_at) }
        : {};
      if (incident === null) {
        const body: AdminIncidentCreate = { ...subject, ...times, status: isMaintenance ? 'scheduled' : status, message: message.trim() };
        await api.post('/admin/v1/incidents', body);
      } else {
        const body: AdminIncidentChange = { ...subject, ...times };
        await api.patch(incidentPath(incident.id), body);
      }
      await toastAndRefetch(incident !== null ? 'Changes saved' : isMaintenance ? 'Maintenance scheduled' : 'Incident published');
      onClose();
    },
  );
  const noun = isMaintenance ? 'maintenance' : 'incident';
  return (
    <FormDialog
      onClose={onClose}
      title={incident !== null ? `Edit ${noun}` : isMaintenance ? 'Schedule maintenance' : 'Report incident'}
      description="Public on the status page and in its feed, within 30 seconds."
      persistent
      form={form}
      errorTitle={incident === null ? 'Nothing was published.' : 'The changes were not saved.'}
      submit={incident !== null ? 'Save changes' : isMaintenance ? 'Schedule maintenance' : 'Publish incident'}
    >
      <Field
        label="Title"
        maxLength={120}
        autoComplete="off"
        {...form.field('title', { validate: (title) => asText(title).trim() !== '' || 'Enter a title.' })}
      />
      {isMaintenance ? (
        <>
          <Field
            label="Start"
            type="datetime-local"
            hint={utcHint(form.watch('starts'))}
            {...form.field('starts', { validate: (starts) => fromLocalInput(asText(starts)) !== null || 'Enter a date and time.' })}
          />
          <Field
            label="End"
            type="datetime-local"
            hint={utcHint(form.watch('ends'))}
            {...form.field('ends', {
              validate: (ends, { starts }) => {
                const end = fromLocalInput(asText(ends));
                if (end === null) return 'Enter a date and time.';
                return end > (fromLocalInput(starts) ?? '') || 'The end must be after the start.';
              },
            })}
          />
        </>
      ) : (
        <Select label="Impact" options={IMPACT_OPTIONS} {...form.register('impact')} />
      )}
      <fieldset className="incident-components">
        <legend className="field-label">Affected components</legend>
        {entriesOf(COMPONENTS).map(([value, label]) => (
          <CheckField key={value} label={label} value={value} {...form.register('components')} />
        ))}
      </fieldset>
      <TextAreaField
        label="Affected models"
        hint="One model ID per line. Empty: none."
        rows={2}
        spellCheck={false}
        {...form.field('models', {
          validate: (models) => modelsOf(asText(models)).length <= MAX_MODELS || `Enter at most ${MAX_MODELS} models.`,
        })}
      />
      {incident !== null ? null : (
        <>
          {isMaintenance ? null : <Select label="Status" options={FIRST_STATUSES} {...form.register('status')} />}
          <TextAreaField
            label="Message"
            hint={isMaintenance ? 'What users will notice.' : 'What users notice, and what happens next. Plain text.'}
            rows={4}
            maxLength={2000}
            {...form.field('message', { validate: (message) => asText(message).trim() !== '' || 'Enter a message.' })}
          />
        </>
      )}
    </FormDialog>
  );
}

function entriesOf<Key extends string, Value>(record: Readonly<Record<Key, Value>>): (readonly [Key, Value])[] {
  return (Object.keys(record) as Key[]).map((key) => [key, record[key]] as const);
}

function inputOf(iso: string | null | undefined): string {
  return iso === null || iso === undefined ? '' : toLocalInput(iso);
}

function asText(value: Fields[keyof Fields]): string {
  return typeof value === 'string' ? value : '';
}

/** Distinct model ids of a text with one per line. */
function modelsOf(text: string): string[] {
  return [...new Set(text.split('\n').map((line) => line.trim()))].filter((line) => line !== '');
}
