/** `KeyDialog`: form for a new or existing API key. `NewKeyDialog`: shows the secret of a new key, once. */
import type { ConsoleKey, ConsoleNewKey } from '@inference/formats';
import { api } from '../../api/api-client.js';
import { useModels } from '../../features/account/models.js';
import { UsdField } from '../../features/account/usd-field.js';
import { PATHS } from '../../routing/paths.js';
import { Dialog, DialogActions, FormDialog } from '../../ui/dialogs/dialog.js';
import { Button, LinkButton } from '../../ui/forms/button.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { Field, Select } from '../../ui/forms/field.js';
import { useFormMutation } from '../../ui/forms/form.js';
import { EMPTY_KEY_FORM, type KeyForm, keyBody, keyForm } from './key-form.js';

const SIGNATURE_FORMS = [
  { value: 'event', label: 'As an event (default)' },
  { value: 'comment', label: 'As a comment' },
] as const;

const BUDGET_PERIODS = [
  { value: 'day', label: 'Every day' },
  { value: 'week', label: 'Every Monday' },
  { value: 'month', label: 'On the first of each month' },
] as const;

interface KeyDialogProps {
  readonly editing: ConsoleKey | 'new';
  readonly onClose: () => void;
  /** `created`: the new key; null after an edit. */
  readonly onDone: (created: ConsoleNewKey | null) => Promise<void>;
}

export function KeyDialog({ editing, onClose, onDone }: KeyDialogProps) {
  const existing = editing === 'new' ? null : editing;
  const form = useFormMutation<KeyForm>(existing === null ? EMPTY_KEY_FORM : keyForm(existing), async (fields, { setError }) => {
    const result = keyBody(fields, Date.now(), existing);
    if (result.kind === 'refused') return setError(result.field, { message: result.problem }, { shouldFocus: true });
    if (existing === null) return onDone(await api.post<ConsoleNewKey>('/console/v1/keys', result.body));
    await api.patch(`/console/v1/keys/${encodeURIComponent(existing.id)}`, result.body);
    return onDone(null);
  });
  return (
    <FormDialog
      onClose={onClose}
      title={existing === null ? 'Create an API key' : `Edit ${existing.name}`}
      form={form}
      submit={existing === null ? 'Create key' : 'Save'}
    >
      <Field label="Name" autoComplete="off" hint="For example, the program that will use the key." {...form.field('name')} />
      <UsdField
        label="Spend limit"
        hint="Maximum total spend with this key. Empty: limited only by the balance."
        {...form.field('spendLimit')}
      />
      <UsdField
        label="Budget"
        hint="Maximum spend per day, week or month. Requests that could exceed it are refused until it resets. Empty: none."
        {...form.field('budget')}
      />
      <Select
        label="Budget resets"
        options={BUDGET_PERIODS}
        hint="At 00:00 UTC. Changes take effect at once and count what was spent before."
        {...form.register('budgetPeriod')}
      />
      <Field label="Expires after" type="date" hint="Empty: never." {...form.field('expiresOn')} />
      <ModelChoice chosen={form.watch('models')} onChange={(models) => form.setValue('models', models, { shouldDirty: true })} />
      <Select
        label="Signature in chat streams"
        options={SIGNATURE_FORMS}
        hint="Choose “comment” for programs that read choices[0] of every event and fail on the event without choices."
        {...form.register('signatureForm')}
      />
    </FormDialog>
  );
}

interface ModelChoiceProps {
  /** Empty: all models. */
  readonly chosen: readonly string[];
  readonly onChange: (models: readonly string[]) => void;
}

function ModelChoice({ chosen, onChange }: ModelChoiceProps) {
  const { data } = useModels();
  const ids = [...new Set([...chosen, ...(data ?? []).map(({ id }) => id)])].sort();
  const toggle = (id: string, on: boolean): void => onChange(on ? [...chosen, id] : chosen.filter((chosenId) => chosenId !== id));
  return (
    <fieldset className="choices">
      <legend className="field-label">Models</legend>
      {ids.map((id) => (
        <label key={id} className="check-label">
          <input type="checkbox" className="check" checked={chosen.includes(id)} onChange={(event) => toggle(id, event.target.checked)} />
          <span>{id}</span>
        </label>
      ))}
      <p className="field-hint">
        {chosen.length === 0 ? 'No model selected: the key can use every model.' : 'The key can use only the selected models.'}
      </p>
    </fieldset>
  );
}

export function NewKeyDialog({ created, onClose }: { readonly created: ConsoleNewKey | null; readonly onClose: () => void }) {
  return (
    <Dialog
      open={created !== null}
      onClose={onClose}
      persistent
      title="Your new key"
      description="Copy the key now: it is shown only once and not stored. Anyone with the key can spend your balance."
    >
      {created === null ? null : <CopyField label="API key" value={created.secret} />}
      <DialogActions>
        <LinkButton href={PATHS.quickStart} kind="secondary">
          Quick start
        </LinkButton>
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
}
