/** Form for the user code of a machine. */
import { useForm } from 'react-hook-form';
import { Card } from '../../ui/display/card.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { Form } from '../../ui/forms/form.js';
import { parseUserCode } from './user-code.js';

interface CodeFormProps {
  readonly initial: string;
  /** Error of the code in the URL; null: none. */
  readonly problem: string | null;
  readonly onCode: (code: string) => void;
}

export function CodeForm({ initial, problem, onCode }: CodeFormProps) {
  const { register, handleSubmit, formState, setError } = useForm({ defaultValues: { code: initial } });
  const error = formState.errors.code?.message ?? (formState.isSubmitted || formState.isDirty ? undefined : (problem ?? undefined));
  return (
    <Card
      title="Enter the code shown on the machine"
      about="Run “inference-provider login” on the machine to get a code. Codes expire after ten minutes."
    >
      <Form
        onSubmit={handleSubmit(({ code }) => {
          const typed = parseUserCode(code);
          if (typed.kind === 'code') onCode(typed.code);
          else setError('code', { message: typed.problem }, { shouldFocus: true });
        })}
      >
        <Field
          label="Code"
          placeholder="WDJB-MJHT"
          hint="Eight letters; case and dash do not matter."
          autoComplete="one-time-code"
          autoCapitalize="characters"
          spellCheck={false}
          maxLength={32}
          error={error}
          {...register('code')}
        />
        <div>
          <Button type="submit" kind="primary">
            Continue
          </Button>
        </div>
      </Form>
    </Card>
  );
}
