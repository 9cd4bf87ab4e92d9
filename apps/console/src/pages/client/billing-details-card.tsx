/** `BillingDetailsCard`: form for the name, address and tax ID on the account's deposit receipts. */
import type { ConsoleBillingDetails, UpdateBillingDetails } from '@inference/formats';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api/api-client.js';
import { useMe } from '../../api/session.js';
import { BILLING_QUERY_KEY } from '../../features/account/balance.js';
import { Card } from '../../ui/display/page.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Field, TextAreaField } from '../../ui/forms/field.js';
import { Form, useFormMutation } from '../../ui/forms/form.js';

const PATH = '/console/v1/billing-details';
const QUERY_KEY = [...BILLING_QUERY_KEY, 'billing-details'];
const MAX_ADDRESS_LINES = 8;

export function BillingDetailsCard() {
  const details = useQuery({
    queryKey: QUERY_KEY,
    queryFn: ({ signal }) => api.get<ConsoleBillingDetails>(PATH, { signal }),
  });
  return (
    <Card title="Billing details" about="Optional. Shown on your receipts, also on those of earlier deposits.">
      <Loaded query={details} subject="The billing details">
        {details.data === undefined ? null : <DetailsForm details={details.data} />}
      </Loaded>
    </Card>
  );
}

function DetailsForm({ details }: { readonly details: ConsoleBillingDetails }) {
  const me = useMe();
  const queryClient = useQueryClient();
  const toast = useToast();
  const initial = { name: details.name ?? '', address: details.address ?? '', taxId: details.tax_id ?? '' };
  const { field, formState, onSubmit, isPending, error } = useFormMutation(initial, async (fields, { reset }) => {
    const update: UpdateBillingDetails = {
      name: textOrNull(fields.name),
      address: textOrNull(fields.address),
      tax_id: textOrNull(fields.taxId),
    };
    const saved = await api.put<ConsoleBillingDetails>(PATH, update);
    queryClient.setQueryData(QUERY_KEY, saved);
    reset({ name: saved.name ?? '', address: saved.address ?? '', taxId: saved.tax_id ?? '' });
    toast.success('Billing details saved');
  });
  return (
    <Form onSubmit={onSubmit} error={error}>
      <Field
        label="Name or company"
        autoComplete="organization"
        hint={`Default: ${me.name}.`}
        {...field('name', { maxLength: maxLength(200) })}
      />
      <TextAreaField
        label="Address"
        autoComplete="street-address"
        rows={4}
        {...field('address', {
          maxLength: maxLength(500),
          validate: (text) => text.trim().split('\n').length <= MAX_ADDRESS_LINES || `At most ${MAX_ADDRESS_LINES} lines.`,
        })}
      />
      <Field label="Tax ID" autoComplete="off" {...field('taxId', { maxLength: maxLength(50) })} />
      <div>
        <Button type="submit" busy={isPending} disabled={!formState.isDirty}>
          Save
        </Button>
      </div>
    </Form>
  );
}

function textOrNull(text: string): string | null {
  return text.trim() || null;
}

function maxLength(value: number) {
  return { value, message: `At most ${value} characters.` };
}
