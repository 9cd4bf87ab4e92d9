/** One model of the catalogue: its names, and the hashes of the files that may be served under its id. */
import type { AdminCatalogueEntry } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { api } from '../../../api/api-client.js';
import { Dialog, DialogActions } from '../../../ui/dialogs/dialog.js';
import { ErrorNote } from '../../../ui/feedback/error-state.js';
import { useToast } from '../../../ui/feedback/toast.js';
import { Button } from '../../../ui/forms/button.js';
import { Field, TextAreaField } from '../../../ui/forms/field.js';
import { Select } from '../../../ui/forms/select.js';
import { ADMIN, cataloguePath } from '../queries.js';
import { readHashes } from './file-hashes.js';

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

/** `entry`: the one to change, or null for a new one. */
export function CatalogueDialog({ entry, onClose }: { readonly entry: AdminCatalogueEntry | null; readonly onClose: () => void }) {
  const [problem, setProblem] = useState<unknown>(null);
  const toast = useToast();
  const queryClient = useQueryClient();
  const { register, handleSubmit, formState } = useForm<CatalogueForm>({
    defaultValues: {
      id: entry?.id ?? '',
      display_name: entry?.display_name ?? '',
      quantization: entry?.quantization ?? '',
      model_type: entry?.model_type ?? 'text',
      gigabytes: entry === null || entry.min_memory_bytes === null ? '' : String(entry.min_memory_bytes / GIB),
      files: entry?.file_sha256.join('\n') ?? '',
    },
  });
  const { errors } = formState;
  const put = async (form: CatalogueForm): Promise<void> => {
    setProblem(null);
    const hashes = readHashes(form.files);
    try {
      await api.put(cataloguePath(form.id.trim()), {
        display_name: form.display_name.trim(),
        quantization: form.quantization.trim(),
        model_type: form.model_type,
        file_sha256: hashes.kind === 'hashes' ? hashes.hashes : [],
        ...(form.gigabytes.trim() === '' ? {} : { min_memory_bytes: Math.round(Number(form.gigabytes) * GIB) }),
      });
      toast.success(`${form.id.trim()} is in the catalogue`);
      await queryClient.invalidateQueries({ queryKey: ADMIN });
      onClose();
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <Dialog
      open
      onOpenChange={(open) => (open ? undefined : onClose())}
      title={entry === null ? 'Add a model' : `Change ${entry.id}`}
      description="Machines that serve another file under this id are refused the model at once."
      keepOpen
    >
      <form className="form" noValidate onSubmit={(event) => void handleSubmit(put)(event)}>
        {problem === null ? null : <ErrorNote error={problem} title="The catalogue was not changed." />}
        {entry === null ? (
          <Field
            label="Id"
            hint="As clients send it."
            autoComplete="off"
            spellCheck={false}
            error={errors.id?.message}
            {...register('id', { validate: (id) => id.trim() !== '' || 'A model needs an id.' })}
          />
        ) : null}
        <Field
          label="Name"
          autoComplete="off"
          error={errors.display_name?.message}
          {...register('display_name', { validate: (name) => name.trim() !== '' || 'A model needs a name.' })}
        />
        <Select label="Makes" options={TYPES} {...register('model_type')} />
        <Field
          label="Quantisation"
          hint="Such as 4bit."
          autoComplete="off"
          error={errors.quantization?.message}
          {...register('quantization', { validate: (label) => label.trim() !== '' || 'Say how it is quantised, such as 4bit or none.' })}
        />
        <Field
          label="Memory that it needs"
          suffix="GB"
          inputMode="decimal"
          autoComplete="off"
          error={errors.gigabytes?.message}
          {...register('gigabytes', {
            validate: (text) =>
              text.trim() === '' || (Number(text) >= 0 && Number(text) <= 2 ** 20) || 'A number of gigabytes, or nothing.',
          })}
        />
        <TextAreaField
          label="Files"
          hint="SHA-256 of each file that may be served, one a line. None: any file."
          spellCheck={false}
          error={errors.files?.message}
          {...register('files', {
            validate: (text) => {
              const hashes = readHashes(text);
              return hashes.kind === 'hashes' || hashes.problem;
            },
          })}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="danger" busy={formState.isSubmitting}>
            {entry === null ? 'Add the model' : 'Change the model'}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
