/** `FindRequest`: form of the usage page that opens one request by id. Responses contain the id in their body or headers. */
import { useLocation } from 'wouter';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { Button } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';

export function FindRequest() {
  const [, navigate] = useLocation();
  const form = useFormMutation<{ id: string }>({ id: '' }, async ({ id }) => navigate(pathWithId(PATHS.usageRequest, id.trim())));
  return (
    <Form row onSubmit={form.onSubmit}>
      <Field
        label="Request ID"
        hideLabel
        placeholder="Request ID, for example req_… or chatcmpl-…"
        autoComplete="off"
        spellCheck={false}
        {...form.field('id', { validate: (id) => id.trim() !== '' || 'Enter a request ID.' })}
      />
      <Button type="submit">Find request</Button>
    </Form>
  );
}
