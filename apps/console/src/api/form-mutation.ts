/** Form whose submission is one request: fields by react-hook-form, progress and error by react-query. */
import { useMutation } from '@tanstack/react-query';
import { type DefaultValues, type FieldValues, type UseFormReturn, useForm } from 'react-hook-form';

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
