/** Form with the error of its last submission above its fields. Fields show their own errors; browser validation is off. */
import type { FormEvent, ReactNode } from 'react';
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
