/** `CatalogueDialog`: adds or edits a model of the catalogue, with its names and the hashes of the permitted files. */
import type { AdminCatalogueEntry } from '@inference/formats';
import { api } from '../../../api/api-client.js';
import { FormDialog } from '../../../ui/dialogs/dialog.js';
import { Field, Select, TextAreaField } from '../../../ui/forms/field.js';
import { useFormMutation } from '../../../ui/forms/form.js';
import { cataloguePath, useToastAndRefetch } from '../queries.js';
import { parseHashes } from './file-hashes.js';

const GIB = 2 ** 30;
const TYPES = [
  { value: 'text', label: 'Text' },
  { value: 'embedding', label: 'Embeddings' },
  { value: 'image', label: 'Images' },
] as const;

/** `entry`: model to edit; null: a new model. */
export function CatalogueDialog({ entry, onClose }: { readonly entry: AdminCatalogueEntry | null; readonly onClose: () => void }) {
  const toastAndRefetch = useToastAndRefetch();
  const form = useFormMutation(
    {
      id: entry?.id ?? '',
      display_name: entry?.display_name ?? '',
      quantization: entry?.quantization ?? '',
      model_type: entry?.model_type ?? 'text',
      gigabytes: entry === null || entry.min_memory_bytes === null ? '' : String(entry.min_memory_bytes / GIB),
      files: entry?.file_sha256.join('\n') ?? '',
    },
    async (fields) => {
      const hashes = parseHashes(fields.files);
      await api.put(cataloguePath(fields.id.trim()), {
        display_name: fields.display_name.trim(),
        quantization: fields.quantization.trim(),
        model_type: fields.model_type,
        file_sha256: hashes.kind === 'hashes' ? hashes.hashes : [],
        ...(fields.gigabytes.trim() === '' ? {} : { min_memory_bytes: Math.round(Number(fields.gigabytes) * GIB) }),
      });
      await toastAndRefetch(`${fields.id.trim()} saved`);
      onClose();
    },
  );
  return (
    <FormDialog
      onClose={onClose}
      title={entry === null ? 'Add model' : `Change ${entry.id}`}
      description="Machines with a different file under this ID stop serving the model immediately."
      persistent
      form={form}
      errorTitle="The catalogue was not changed."
      submit="Save model"
      danger
    >
      {entry === null ? (
        <Field
          label="ID"
          hint="The model ID that clients send."
          autoComplete="off"
          spellCheck={false}
          {...form.field('id', { validate: (id) => id.trim() !== '' || 'Enter an ID.' })}
        />
      ) : null}
      <Field
        label="Name"
        autoComplete="off"
        {...form.field('display_name', { validate: (name) => name.trim() !== '' || 'Enter a name.' })}
      />
      <Select label="Output" options={TYPES} {...form.register('model_type')} />
      <Field
        label="Quantization"
        hint="Such as 4bit."
        autoComplete="off"
        {...form.field('quantization', { validate: (label) => label.trim() !== '' || 'Enter a quantization, such as 4bit or none.' })}
      />
      <Field
        label="Required memory"
        suffix="GB"
        inputMode="decimal"
        autoComplete="off"
        {...form.field('gigabytes', {
          validate: (text) =>
            text.trim() === '' || (Number(text) >= 0 && Number(text) <= 2 ** 20) || 'Enter a number of gigabytes or leave empty.',
        })}
      />
      <TextAreaField
        label="Files"
        hint="SHA-256 of each permitted file, one per line. Empty: any file."
        spellCheck={false}
        {...form.field('files', {
          validate: (text) => {
            const hashes = parseHashes(text);
            return hashes.kind === 'hashes' || hashes.problem;
          },
        })}
      />
    </FormDialog>
  );
}
