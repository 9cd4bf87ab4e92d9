/** Form with the error of its last submission above its fields. Fields show their own errors; browser validation is off. */

import { useMutation } from '@tanstack/react-query';
import type { FormEvent, ReactNode } from 'react';
import { type DefaultValues, type FieldValues, type UseFormReturn, useForm } from 'react-hook-form';
import { ErrorNote } from '../feedback/error-state.js';

interface FormProps {
  readonly onSubmit: (event: FormEvent) => unknown;
  /** Error of the last submission; null or absent: none. */
  readonly error?: unknown;
  readonly errorTitle?: string;
  /** A single field with its button beside it. */
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

interface FormMutation<Fields extends FieldValues> extends UseFormReturn<Fields> {
  readonly errors: UseFormReturn<Fields>['formState']['errors'];
  /** Handler of the form's submit event: validates, then sends. */
  readonly onSubmit: ReturnType<UseFormReturn<Fields>['handleSubmit']>;
  readonly isPending: boolean;
  /** Error of the last submission; null while one runs. */
  readonly error: Error | null;
}

/** `send` receives the validated fields. Its rejection becomes `error`. `send` also finishes after the form is removed. */
export function useFormMutation<Fields extends FieldValues>(
  defaultValues: DefaultValues<Fields>,
  send: (fields: Fields, form: UseFormReturn<Fields>) => Promise<unknown>,
): FormMutation<Fields> {
  const form = useForm<Fields>({ defaultValues });
  const { mutate, isPending, error } = useMutation({ mutationFn: (fields: Fields) => send(fields, form) });
  const onSubmit = form.handleSubmit((fields) => mutate(fields));
  return { ...form, errors: form.formState.errors, onSubmit, isPending, error };
}
