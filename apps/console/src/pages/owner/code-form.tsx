/** Where the code of a machine is typed. */
import { useForm } from 'react-hook-form';
import { Card } from '../../ui/display/card.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { readUserCode } from './user-code.js';

export interface CodeFormProps {
  readonly initial: string;
  /** What is wrong with the code that the address of the page brought; null: nothing. */
  readonly problem: string | null;
  readonly onCode: (code: string) => void;
}

export function CodeForm({ initial, problem, onCode }: CodeFormProps) {
  const { register, handleSubmit, formState, setError } = useForm({ defaultValues: { code: initial } });
  const error = formState.errors.code?.message ?? (formState.isSubmitted || formState.isDirty ? undefined : (problem ?? undefined));
  return (
    <Card
      title="Which code does the machine show?"
      about="“inference-provider login” shows it on the machine, and it is good for ten minutes."
    >
      <form
        className="form"
        noValidate
        onSubmit={(event) =>
          void handleSubmit(({ code }) => {
            const typed = readUserCode(code);
            if (typed.kind === 'code') onCode(typed.code);
            else setError('code', { message: typed.problem }, { shouldFocus: true });
          })(event)
        }
      >
        <Field
          label="Code"
          placeholder="WDJB-MJHT"
          hint="Eight letters, upper or lower case, with or without the dash."
          autoComplete="one-time-code"
          autoCapitalize="characters"
          spellCheck={false}
          maxLength={32}
          error={error}
          {...register('code')}
        />
        <div>
          <Button type="submit" kind="primary">
            Go on
          </Button>
        </div>
      </form>
    </Card>
  );
}
