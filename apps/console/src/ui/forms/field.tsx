/**
 * Labelled input with hint and error, linked for screen readers. Made for react-hook-form:
 *
 * `<Field label="Name" error={errors.name?.message} {...register('name')} />`.
 */
import { type ComponentPropsWithRef, type ReactNode, useId } from 'react';

interface FieldFrameProps {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  /** Shown only to screen readers. */
  readonly hideLabel?: boolean;
}

interface FieldProps extends FieldFrameProps, Omit<ComponentPropsWithRef<'input'>, 'className' | 'id'> {
  /** Text inside the end of the input, such as a unit. */
  readonly suffix?: ReactNode;
}

export function Field({ label, hint, error, hideLabel = false, suffix, ...input }: FieldProps) {
  const ids = useFieldIds(hint, error);
  return (
    <FieldFrame ids={ids} label={label} hint={hint} error={error} hideLabel={hideLabel}>
      <span className="input-frame">
        <input {...input} {...ids.control} className="input" />
        {suffix === undefined ? null : <span className="input-suffix">{suffix}</span>}
      </span>
    </FieldFrame>
  );
}

interface TextAreaFieldProps extends FieldFrameProps, Omit<ComponentPropsWithRef<'textarea'>, 'className' | 'id'> {}

export function TextAreaField({ label, hint, error, hideLabel = false, ...input }: TextAreaFieldProps) {
  const ids = useFieldIds(hint, error);
  return (
    <FieldFrame ids={ids} label={label} hint={hint} error={error} hideLabel={hideLabel}>
      <textarea {...input} {...ids.control} className="input" />
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

export function useFieldIds(hint: ReactNode, error: string | undefined): FieldIds {
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

export function FieldFrame({
  ids,
  label,
  hint,
  error,
  hideLabel = false,
  children,
}: FieldFrameProps & { readonly ids: FieldIds; readonly children: ReactNode }) {
  return (
    <div className="field">
      <label htmlFor={ids.control.id} className={hideLabel ? 'visually-hidden' : 'field-label'}>
        {label}
      </label>
      {children}
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
