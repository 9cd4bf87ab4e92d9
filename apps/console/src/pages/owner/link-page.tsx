/** `/link`: the owner enters the code shown on a machine, and approves or denies the link to the account (RFC 8628, section 3.3). */
import { useLocation, useSearch } from 'wouter';
import { PATHS } from '../../routing/paths.js';
import { Card, PageHeader } from '../../ui/display/page.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';
import { DeviceRequest } from './device-request.js';
import { parseUserCode } from './user-code.js';

export function Page() {
  const [, navigate] = useLocation();
  const codeInUrl = new URLSearchParams(useSearch()).get('code') ?? '';
  const typed = codeInUrl === '' ? null : parseUserCode(codeInUrl);
  const reset = (): void => navigate(PATHS.link);
  return (
    <>
      <PageHeader title="Link a machine" about="A linked machine earns for your account, and you can monitor it here." />
      {typed?.kind === 'code' ? (
        <DeviceRequest key={typed.code} code={typed.code} onAnother={reset} />
      ) : (
        <CodeForm
          initial={codeInUrl}
          problem={typed?.kind === 'refused' ? typed.problem : null}
          onCode={(code) => navigate(`${PATHS.link}?code=${code}`)}
        />
      )}
    </>
  );
}

interface CodeFormProps {
  readonly initial: string;
  /** Error of the code in the URL, if any. */
  readonly problem: string | null;
  readonly onCode: (code: string) => void;
}

function CodeForm({ initial, problem, onCode }: CodeFormProps) {
  const form = useFormMutation({ code: initial }, async ({ code }, { setError }) => {
    const typed = parseUserCode(code);
    if (typed.kind === 'code') onCode(typed.code);
    else setError('code', { message: typed.problem }, { shouldFocus: true });
  });
  const { error, ...field } = form.field('code');
  const { isSubmitted, isDirty } = form.formState;
  return (
    <Card
      title="Enter the code shown on the machine"
      about="Run “inference-provider login” on the machine to get a code. Codes expire after ten minutes."
    >
      <Form onSubmit={form.onSubmit}>
        <Field
          label="Code"
          placeholder="WDJB-MJHT"
          hint="Eight letters; case and dash do not matter."
          autoComplete="one-time-code"
          autoCapitalize="characters"
          spellCheck={false}
          maxLength={32}
          error={error ?? (isSubmitted || isDirty ? undefined : (problem ?? undefined))}
          {...field}
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
