/** `UsdField`: input of an amount in US dollars. */
import type { ComponentProps } from 'react';
import { Field } from '../../ui/forms/field.js';

export function UsdField(props: ComponentProps<typeof Field>) {
  return <Field inputMode="decimal" suffix="USD" autoComplete="off" {...props} />;
}
