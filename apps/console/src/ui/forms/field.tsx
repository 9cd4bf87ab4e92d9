/**
 * Labelled inputs with hint and error, which screen readers announce with the input. Designed for react-hook-form:
 *
 * `<Field label="Name" error={errors.name?.message} {...register('name')} />`.
 */
import { Toggle } from '@base-ui/react/toggle';
import { ToggleGroup } from '@base-ui/react/toggle-group';
import { ChevronDown } from 'lucide-react';
import { type ComponentPropsWithRef, type ReactNode, useId } from 'react';

interface FieldFrameProps {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  /** Shown only to screen readers. */
  readonly hideLabel?: boolean | undefined;
}

interface FieldProps extends FieldFrameProps, Omit<ComponentPropsWithRef<'input'>, 'className' | 'id'> {
  /** Text at the end of the input, such as a unit. */
  readonly suffix?: ReactNode;
}

export function Field({ label, hint, error, hideLabel, suffix, ...input }: FieldProps) {
  return (
    <FieldFrame label={label} hint={hint} error={error} hideLabel={hideLabel}>
      {(control) => (
        <span className="input-frame">
          <input {...input} {...control} className="input" />
          {suffix === undefined ? null : <span className="input-suffix">{suffix}</span>}
        </span>
      )}
    </FieldFrame>
  );
}

interface TextAreaFieldProps extends FieldFrameProps, Omit<ComponentPropsWithRef<'textarea'>, 'className' | 'id'> {}

export function TextAreaField({ label, hint, error, hideLabel, ...input }: TextAreaFieldProps) {
  return (
    <FieldFrame label={label} hint={hint} error={error} hideLabel={hideLabel}>
      {(control) => <textarea {...input} {...control} className="input" />}
    </FieldFrame>
  );
}

interface CheckFieldProps extends Omit<FieldFrameProps, 'hideLabel'>, Omit<ComponentPropsWithRef<'input'>, 'className' | 'id' | 'type'> {}

export function CheckField({ label, hint, error, ...input }: CheckFieldProps) {
  const ids = useFieldIds(hint, error);
  return (
    <div className="field">
      <label className="check-label">
        <input {...input} {...ids.control} type="checkbox" className="check" />
        <span>{label}</span>
      </label>
      <FieldNotes ids={ids} hint={hint} error={error} />
    </div>
  );
}

interface FieldIds {
  readonly hintId: string;
  readonly errorId: string;
  /** Attributes of the input. */
  readonly control: { readonly id: string; readonly 'aria-invalid': true | undefined; readonly 'aria-describedby': string | undefined };
}

function useFieldIds(hint: ReactNode, error: string | undefined): FieldIds {
  const id = useId();
  const [hintId, errorId] = [`${id}-hint`, `${id}-error`];
  const described = [error === undefined ? null : errorId, hint === undefined ? null : hintId].filter((one) => one !== null);
  return {
    hintId,
    errorId,
    control: {
      id,
      'aria-invalid': error === undefined ? undefined : true,
      'aria-describedby': described.length === 0 ? undefined : described.join(' '),
    },
  };
}

interface FieldFrameChildren {
  /** Renders the input with its attributes. */
  readonly children: (control: FieldIds['control']) => ReactNode;
}

function FieldFrame({ label, hint, error, hideLabel = false, children }: FieldFrameProps & FieldFrameChildren) {
  const ids = useFieldIds(hint, error);
  return (
    <div className="field">
      <label htmlFor={ids.control.id} className={hideLabel ? 'visually-hidden' : 'field-label'}>
        {label}
      </label>
      {children(ids.control)}
      <FieldNotes ids={ids} hint={hint} error={error} />
    </div>
  );
}

function FieldNotes({ ids, hint, error }: Pick<FieldFrameProps, 'hint' | 'error'> & { readonly ids: FieldIds }) {
  return (
    <>
      {error === undefined ? null : (
        <p id={ids.errorId} className="field-error" role="alert">
          {error}
        </p>
      )}
      {hint === undefined ? null : (
        <p id={ids.hintId} className="field-hint">
          {hint}
        </p>
      )}
    </>
  );
}

export interface SelectOption<Value extends string = string> {
  readonly value: Value;
  readonly label: string;
  readonly disabled?: boolean;
}

interface SelectProps<Value extends string>
  extends FieldFrameProps,
    Omit<ComponentPropsWithRef<'select'>, 'className' | 'id' | 'children' | 'multiple'> {
  readonly options: readonly SelectOption<Value>[];
  readonly onValue?: (value: Value) => void;
}

/** Native select: fast, accessible, and suited to phones. */
export function Select<Value extends string>({ label, hint, error, hideLabel, options, onValue, onChange, ...select }: SelectProps<Value>) {
  return (
    <FieldFrame label={label} hint={hint} error={error} hideLabel={hideLabel}>
      {(control) => (
        <span className="select-frame">
          <select
            {...select}
            {...control}
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
      )}
    </FieldFrame>
  );
}

interface SegmentedProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly label: string }[];
  readonly onValue: (value: Value) => void;
}

/** Choice among a few short values, all visible, such as a time window. */
export function Segmented<Value extends string>({ label, value, options, onValue }: SegmentedProps<Value>) {
  return (
    <ToggleGroup
      className="segmented"
      aria-label={label}
      value={[value]}
      onValueChange={([next]) => {
        if (next !== undefined) onValue(next as Value);
      }}
    >
      {options.map((option) => (
        <Toggle key={option.value} value={option.value} className="segment">
          {option.label}
        </Toggle>
      ))}
    </ToggleGroup>
  );
}
