/** The form of a key, for a new one and for one that is there. */
import type { ConsoleKey, ConsoleNewKey } from '@inference/formats';
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { api } from '../../api/api-client.js';
import { Dialog, DialogActions } from '../../ui/dialogs/dialog.js';
import { ErrorNote } from '../../ui/feedback/error-state.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { Select } from '../../ui/forms/select.js';
import { EMPTY_KEY_FORM, type KeyForm, keyBody, keyForm } from './key-form.js';
import { ModelChoice } from './model-choice.js';

const SIGNATURE_FORMS = [
  { value: 'event', label: 'As an event (default)' },
  { value: 'comment', label: 'As a comment' },
] as const;

export interface KeyDialogProps {
  readonly editing: ConsoleKey | 'new' | null;
  readonly onClose: () => void;
  /** With the new key, or null when one was changed. */
  readonly onDone: (created: ConsoleNewKey | null) => Promise<void>;
}

export function KeyDialog({ editing, onClose, onDone }: KeyDialogProps) {
  const isNew = editing === 'new' || editing === null;
  return (
    <Dialog
      open={editing !== null}
      onOpenChange={(open) => (open ? undefined : onClose())}
      title={isNew ? 'Create an API key' : `Edit ${editing.name}`}
    >
      <KeyFields editing={isNew ? null : editing} onClose={onClose} onDone={onDone} />
    </Dialog>
  );
}

function KeyFields({
  editing,
  onClose,
  onDone,
}: {
  readonly editing: ConsoleKey | null;
  readonly onClose: () => void;
  readonly onDone: KeyDialogProps['onDone'];
}) {
  const [problem, setProblem] = useState<unknown>(null);
  const { register, handleSubmit, formState, setError, setValue, watch } = useForm<KeyForm>({
    defaultValues: editing === null ? EMPTY_KEY_FORM : keyForm(editing),
  });
  const { errors } = formState;
  const save = async (form: KeyForm): Promise<void> => {
    setProblem(null);
    const result = keyBody(form, Date.now());
    if (result.kind === 'refused') return setError(result.field, { message: result.problem }, { shouldFocus: true });
    try {
      if (editing === null) await onDone(await api.post<ConsoleNewKey>('/console/v1/keys', result.body));
      else {
        await api.patch(`/console/v1/keys/${encodeURIComponent(editing.id)}`, result.body);
        await onDone(null);
      }
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <form className="form" noValidate onSubmit={(event) => void handleSubmit(save)(event)}>
      {problem === null ? null : <ErrorNote error={problem} />}
      <Field
        label="Name"
        autoComplete="off"
        hint="Such as the program that will use it."
        error={errors.name?.message}
        {...register('name')}
      />
      <Field
        label="Spend limit"
        inputMode="decimal"
        autoComplete="off"
        suffix="USD"
        hint="The most that may ever be spent with this key. Empty: no limit but the balance."
        error={errors.spendLimit?.message}
        {...register('spendLimit')}
      />
      <Field label="Expires after" type="date" hint="Empty: never." error={errors.expiresOn?.message} {...register('expiresOn')} />
      <ModelChoice chosen={watch('models')} onChange={(models) => setValue('models', models, { shouldDirty: true })} />
      <Select
        label="Signature of chat streams"
        options={SIGNATURE_FORMS}
        hint="Choose the comment for programs that read choices[0] of every event and fail at the event without choices."
        {...register('signatureForm')}
      />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" busy={formState.isSubmitting}>
          {editing === null ? 'Create key' : 'Save'}
        </Button>
      </DialogActions>
    </form>
  );
}
