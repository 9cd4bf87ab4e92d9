/** Edits one model of the catalogue: names, and hashes of the permitted files. */
import type { AdminCatalogueEntry } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { api } from '../../../api/api-client.js';
import { Dialog, DialogActions } from '../../../ui/dialogs/dialog.js';
import { useToast } from '../../../ui/feedback/toast.js';
import { Button } from '../../../ui/forms/button.js';
import { Field, Select, TextAreaField } from '../../../ui/forms/field.js';
import { Form, useFormMutation } from '../../../ui/forms/form.js';
import { ADMIN_KEY, cataloguePath } from '../queries.js';
import { parseHashes } from './file-hashes.js';

interface CatalogueForm {
  readonly id: string;
  readonly display_name: string;
  readonly quantization: string;
  readonly model_type: AdminCatalogueEntry['model_type'];
  readonly gigabytes: string;
  readonly files: string;
}

const GIB = 2 ** 30;
const TYPES = [
  { value: 'text', label: 'Text' },
  { value: 'embedding', label: 'Embeddings' },
  { value: 'image', label: 'Images' },
] as const;

/** `entry`: the model to edit; null for a new one. */
export function CatalogueDialog({ entry, onClose }: { readonly entry: AdminCatalogueEntry | null; readonly onClose: () => void }) {
  const toast = useToast();
  const queryClient = useQueryClient();
  const { register, errors, onSubmit, isPending, error } = useFormMutation<CatalogueForm>(
    {
      id: entry?.id ?? '',
      display_name: entry?.display_name ?? '',
      quantization: entry?.quantization ?? '',
      model_type: entry?.model_type ?? 'text',
      gigabytes: entry === null || entry.min_memory_bytes === null ? '' : String(entry.min_memory_bytes / GIB),
      files: entry?.file_sha256.join('\n') ?? '',
    },
    async (form) => {
      const hashes = parseHashes(form.files);
      await api.put(cataloguePath(form.id.trim()), {
        display_name: form.display_name.trim(),
        quantization: form.quantization.trim(),
        model_type: form.model_type,
        file_sha256: hashes.kind === 'hashes' ? hashes.hashes : [],
        ...(form.gigabytes.trim() === '' ? {} : { min_memory_bytes: Math.round(Number(form.gigabytes) * GIB) }),
      });
      toast.success(`${form.id.trim()} saved`);
      await queryClient.invalidateQueries({ queryKey: ADMIN_KEY });
      onClose();
    },
  );
  return (
    <Dialog
      open
      onOpenChange={(open) => (open ? undefined : onClose())}
      title={entry === null ? 'Add model' : `Change ${entry.id}`}
      description="Machines with a different file under this ID stop serving the model immediately."
      persistent
    >
      <Form onSubmit={onSubmit} error={error} errorTitle="The catalogue was not changed.">
        {entry === null ? (
          <Field
            label="ID"
            hint="The model ID that clients send."
            autoComplete="off"
            spellCheck={false}
            error={errors.id?.message}
            {...register('id', { validate: (id) => id.trim() !== '' || 'Enter an ID.' })}
          />
        ) : null}
        <Field
          label="Name"
          autoComplete="off"
          error={errors.display_name?.message}
          {...register('display_name', { validate: (name) => name.trim() !== '' || 'Enter a name.' })}
        />
        <Select label="Output" options={TYPES} {...register('model_type')} />
        <Field
          label="Quantization"
          hint="Such as 4bit."
          autoComplete="off"
          error={errors.quantization?.message}
          {...register('quantization', { validate: (label) => label.trim() !== '' || 'Enter a quantization, such as 4bit or none.' })}
        />
        <Field
          label="Required memory"
          suffix="GB"
          inputMode="decimal"
          autoComplete="off"
          error={errors.gigabytes?.message}
          {...register('gigabytes', {
            validate: (text) =>
              text.trim() === '' || (Number(text) >= 0 && Number(text) <= 2 ** 20) || 'Enter a number of gigabytes or leave empty.',
          })}
        />
        <TextAreaField
          label="Files"
          hint="SHA-256 of each permitted file, one per line. Empty: any file."
          spellCheck={false}
          error={errors.files?.message}
          {...register('files', {
            validate: (text) => {
              const hashes = parseHashes(text);
              return hashes.kind === 'hashes' || hashes.problem;
            },
          })}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="danger" busy={isPending}>
            Save model
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  );
}
