/** `Form` and `useFormMutation`: a form and the state of its submission, usually a request. Shows the submission's error above the fields. */
import { useMutation } from '@tanstack/react-query';
import type { FormEvent, ReactNode } from 'react';
import { type DefaultValues, type FieldValues, type Path, type RegisterOptions, type UseFormReturn, useForm } from 'react-hook-form';
import { ErrorNote } from '../feedback/error-state.js';

interface FormProps {
  readonly onSubmit: (event: FormEvent) => unknown;
  /** Error of the last submission, if any. */
  readonly error?: unknown;
  readonly errorTitle?: string | undefined;
  /** Layout with one field and its button in a row. */
  readonly row?: boolean;
  readonly children: ReactNode;
}

export function Form({ onSubmit, error = null, errorTitle, row = false, children }: FormProps) {
  return (
    <form className={row ? 'form form-row' : 'form'} noValidate onSubmit={(event) => void onSubmit(event)}>
      <ErrorNote error={error} title={errorTitle} />
      {children}
    </form>
  );
}

/** State of a form: fields by react-hook-form, progress and error of the submission by react-query. */
export type FormMutation<Fields extends FieldValues = FieldValues> = ReturnType<typeof useFormMutation<Fields>>;

/** `send`: submits the validated fields; its rejection becomes `error`. A running submission also finishes after the form is removed. */
export function useFormMutation<Fields extends FieldValues>(
  defaultValues: DefaultValues<Fields>,
  send: (fields: Fields, form: UseFormReturn<Fields>) => Promise<unknown>,
) {
  const form = useForm<Fields>({ defaultValues });
  const { mutate, isPending, error } = useMutation({ mutationFn: (fields: Fields) => send(fields, form) });
  return {
    ...form,
    /** Properties of an input: registration, validation and the message of an invalid value. */
    field: (name: Path<Fields>, rules?: RegisterOptions<Fields, Path<Fields>>) => ({
      ...form.register(name, rules),
      error: form.getFieldState(name, form.formState).error?.message,
    }),
    /** Handler of the form's submit event: validates, then sends. */
    onSubmit: form.handleSubmit((fields) => mutate(fields)),
    isPending,
    /** Error of the last submission; null while one runs. */
    error,
  };
}
