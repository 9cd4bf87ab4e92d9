/** `SettingsPanel`: fields for the models, system prompt and parameters of the next requests. */
import { useId, useState } from 'react';
import { type ModelEntry, modelName } from '../../../features/account/models.js';
import { CheckField, Field, Select, TextAreaField } from '../../../ui/forms/field.js';
import type { ParameterForm } from './parameters.js';

interface SettingsPanelProps {
  readonly models: readonly ModelEntry[];
  /** The model to ask; two models to compare. */
  readonly selected: readonly string[];
  readonly onSelect: (selected: readonly string[]) => void;
  readonly form: ParameterForm;
  readonly onForm: (form: ParameterForm) => void;
  readonly refused: { readonly field: keyof ParameterForm; readonly problem: string } | null;
}

export function SettingsPanel({ models, selected, onSelect, form, onForm, refused }: SettingsPanelProps) {
  const heading = useId();
  const [open, setOpen] = useState(false);
  const [first = '', second] = selected;
  const options = models.map((one) => ({ value: one.id, label: modelName(one) }));
  const other = models.find(({ id }) => id !== first) ?? models[0];
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
      <Select
        label="Model"
        value={first}
        options={options}
        onValue={(value) => onSelect(second === undefined ? [value] : [value, second])}
      />
      <CheckField
        label="Compare with another"
        hint="Sends each message to both models. Each request is billed on its own."
        checked={second !== undefined}
        disabled={other === undefined}
        onChange={(event) => onSelect(event.target.checked && other !== undefined ? [first, other.id] : [first])}
      />
      {second === undefined ? null : (
        <Select label="Second model" value={second} options={options} onValue={(value) => onSelect([first, value])} />
      )}
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
