/** Native select: fast, accessible, and suited to phones. */
import { ChevronDown } from 'lucide-react';
import type { ComponentPropsWithRef, ReactNode } from 'react';
import { FieldFrame, useFieldIds } from './field.js';

export interface SelectOption<Value extends string = string> {
  readonly value: Value;
  readonly label: string;
  readonly disabled?: boolean;
}

interface SelectProps<Value extends string> extends Omit<ComponentPropsWithRef<'select'>, 'className' | 'id' | 'children' | 'multiple'> {
  readonly label: ReactNode;
  readonly options: readonly SelectOption<Value>[];
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly hideLabel?: boolean;
  readonly onValue?: (value: Value) => void;
}

export function Select<Value extends string>({
  label,
  options,
  hint,
  error,
  hideLabel = false,
  onValue,
  onChange,
  ...select
}: SelectProps<Value>) {
  const ids = useFieldIds(hint, error);
  return (
    <FieldFrame ids={ids} label={label} hint={hint} error={error} hideLabel={hideLabel}>
      <span className="select-frame">
        <select
          {...select}
          {...ids.control}
          className="input select"
          onChange={(event) => {
            onChange?.(event);
            onValue?.(event.target.value as Value);
          }}
        >
          {options.map(({ value, label: text, disabled }) => (
            <option key={value} value={value} disabled={disabled}>
              {text}
            </option>
          ))}
        </select>
        <ChevronDown size={16} aria-hidden="true" />
      </span>
    </FieldFrame>
  );
}
