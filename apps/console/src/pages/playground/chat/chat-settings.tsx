/** Model, system prompt and parameters of the conversation. */
import { useId, useState } from 'react';
import { type ModelEntry, modelName } from '../../../features/account/models.js';
import { Field, TextAreaField } from '../../../ui/forms/field.js';
import { Select } from '../../../ui/forms/select.js';
import type { ParameterForm } from './parameters.js';

interface ChatSettingsPanelProps {
  readonly models: readonly ModelEntry[];
  readonly model: string;
  readonly onModel: (model: string) => void;
  readonly form: ParameterForm;
  readonly onForm: (form: ParameterForm) => void;
  readonly refused: { readonly field: keyof ParameterForm; readonly problem: string } | null;
}

export function ChatSettingsPanel({ models, model, onModel, form, onForm, refused }: ChatSettingsPanelProps) {
  const heading = useId();
  const [open, setOpen] = useState(false);
  const bind = (field: keyof ParameterForm) => ({
    value: form[field],
    error: refused?.field === field ? refused.problem : undefined,
    autoComplete: 'off',
    onChange: (event: { target: { value: string } }) => onForm({ ...form, [field]: event.target.value }),
  });
  return (
    <section className="settings" aria-labelledby={heading}>
      <h2 id={heading} className="visually-hidden">
        Settings
      </h2>
      <Select label="Model" value={model} options={models.map((one) => ({ value: one.id, label: modelName(one) }))} onValue={onModel} />
      <TextAreaField label="System prompt" rows={3} {...bind('system')} />
      <details open={open || refused !== null} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Parameters</summary>
        <div className="settings-grid">
          <Field label="Temperature" inputMode="decimal" placeholder="1" {...bind('temperature')} />
          <Field label="Top P" inputMode="decimal" placeholder="1" {...bind('topP')} />
          <Field label="Max tokens" inputMode="numeric" {...bind('maxTokens')} />
          <Field label="Seed" inputMode="numeric" {...bind('seed')} />
        </div>
        <TextAreaField label="Stop sequences" hint="One per line, up to four." rows={2} {...bind('stop')} />
      </details>
    </section>
  );
}
