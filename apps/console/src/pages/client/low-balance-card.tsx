/** `LowBalanceCard`: sets the balance below which the account gets an email. */
import type { ConsoleLowBalanceAlert } from '@inference/formats';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useForm } from 'react-hook-form';
import { Link } from 'wouter';
import { api } from '../../api/api-client.js';
import { useActiveAccount, useMe } from '../../api/session.js';
import { checkUsd, formatUsdInput, microUsdOf } from '../../features/account/usd-amount.js';
import { UsdField } from '../../features/account/usd-field.js';
import { PATHS } from '../../routing/paths.js';
import { formatUsd } from '../../ui/display/figures.js';
import { Card } from '../../ui/display/page.js';
import { Note } from '../../ui/feedback/note.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { Form } from '../../ui/forms/form.js';

const PATH = '/console/v1/low-balance-alert';
const QUERY_KEY = ['low-balance-alert'];

export function LowBalanceCard() {
  const { data } = useQuery({
    queryKey: QUERY_KEY,
    queryFn: ({ signal }) => api.get<ConsoleLowBalanceAlert>(PATH, { signal }),
  });
  return data?.available === true ? <AlertForm threshold={data.threshold_micro_usd} /> : null;
}

function AlertForm({ threshold }: { readonly threshold: number | null }) {
  const me = useMe();
  const { organisation } = useActiveAccount();
  const recipient = organisation === null ? me.email : 'owners and billing members';
  const queryClient = useQueryClient();
  const toast = useToast();
  const { register, handleSubmit, formState } = useForm({ values: { amount: threshold === null ? '5' : formatUsdInput(threshold) } });
  const save = useMutation({
    mutationFn: (micro: number | null) => api.put<ConsoleLowBalanceAlert>(PATH, { threshold_micro_usd: micro }),
    onSuccess: (saved) => {
      queryClient.setQueryData(QUERY_KEY, saved);
      toast.success(saved.threshold_micro_usd === null ? 'Alert turned off' : `Alert set at ${formatUsd(saved.threshold_micro_usd)}`);
    },
  });
  return (
    <Card title="Low-balance alert" about={`We email ${recipient} when the balance falls below this amount, at most once a day.`}>
      {me.email_verified ? null : (
        <Note tone="warn" title="Your email address is not verified.">
          <p>
            Alerts are sent to verified addresses only. <Link href={PATHS.account}>Verify the address in your account.</Link>
          </p>
        </Note>
      )}
      <Form onSubmit={handleSubmit(({ amount }) => save.mutate(microUsdOf(amount)))} error={save.error}>
        <UsdField
          label="Alert below, in US dollars"
          error={formState.errors.amount?.message}
          {...register('amount', { validate: (text) => checkUsd(text) })}
        />
        <div className="row">
          <Button type="submit" kind="primary" busy={save.isPending && save.variables !== null}>
            {threshold === null ? 'Turn on' : 'Save'}
          </Button>
          {threshold === null ? null : (
            <Button busy={save.isPending && save.variables === null} onClick={() => save.mutate(null)}>
              Turn off
            </Button>
          )}
        </div>
      </Form>
    </Card>
  );
}
